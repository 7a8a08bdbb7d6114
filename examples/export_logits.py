"""A finished run as an audit file, and the proof that nothing is lost: the audit gives the run's own numbers.

python examples/export_logits.py runs/digits digits.npz
"""

import sys
from pathlib import Path

from forgetgauge.auditing import audit_file, write_audit_file
from forgetgauge.results.record import read_result


def main(run_folder: Path, path: Path) -> None:
    """Export, audit, compare."""
    write_audit_file(run_folder, path)
    run = read_result(run_folder / "result.json")
    (game,) = run.games
    audit = audit_file(path, level=game.spec["level"], delta=game.spec["delta"], seed=game.spec["seed"])
    for method, audited in audit.methods.items():
        known = game.methods[method].by_adversary
        same = all(
            known[name].by_pair == found.by_pair for name, found in audited.by_adversary.items() if name in known
        )
        print(f"{method}: Q = {audited.quality:.3f}, advantages {'as in the run' if same else 'DIFFER from the run'}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
