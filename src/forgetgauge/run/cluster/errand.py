"""What a node is sent: this file alone goes as source, so that a node without this version can say so by name.

It may import nothing of ours before the node is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

REFUSED = "refused"


def errand(*arguments: Any) -> Iterator[Any]:
    """The body of a Ray task: (`REFUSED`, node, why) where this machine cannot work for the run, else `serve`."""
    import ray

    node = (ray.get_runtime_context().get_node_id(), ray.util.get_node_ip_address())
    try:
        from forgetgauge.run.cluster.serving import serve
    except BaseException as error:
        yield REFUSED, node, f"forgetgauge cannot be imported there: {type(error).__name__}: {error}"
        return
    yield from serve(node, *arguments)
