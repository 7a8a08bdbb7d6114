"""A test as an in-toto Statement v1, unsigned: what other programs ask for when they gate on a test result.

Two predicates on the same subject. The one that everybody reads, test-result v0.1, has room for an outcome and names of
tests; ours holds everything that was measured.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from forgetgauge.report.tested import Tested

STATEMENT = "https://in-toto.io/Statement/v1"
TEST_RESULT = "https://in-toto.io/attestation/test-result/v0.1"
OWN_PREDICATE = "urn:forgetgauge:erasure-test:v1"
"""A name and no address, since the project has none of its own to publish a description at."""
_SHA256 = re.compile(r"[0-9a-f]{64}")


def result_statement(test: Tested, subject: Mapping[str, str], url: str | None) -> dict[str, Any]:
    """The statement that other programs read; `subject` is name -> SHA-256 of what was tested."""
    predicate: dict[str, Any] = {
        "result": test.outcome,
        "configuration": _configuration(test),
        **({} if url is None else {"url": url}),
        "passedTests": test.checks_that("PASSED"),
        "warnedTests": test.checks_that("WARNED"),
        "failedTests": test.checks_that("FAILED"),
    }
    return _statement(subject, TEST_RESULT, predicate)


def whole_statement(test: Tested, subject: Mapping[str, str], stated: Mapping[str, str | None]) -> dict[str, Any]:
    """The statement with everything measured, and what the one who made it states."""
    predicate = {
        "kind": test.kind,
        "name": test.name,
        "verdict": test.verdict,
        "resolution": test.resolution,
        "result": test.outcome,
        "checks": test.checks,
        "inWords": test.numbers,
        "doesNotSay": list(test.limits),
        "stated": dict(stated),
        "warnings": test.warnings,
        "data": test.data,
        "digests": test.digests,
        "settings": test.settings,
        "measured": test.measured,
        "environment": test.environment,
    }
    return _statement(subject, OWN_PREDICATE, predicate)


def _statement(subject: Mapping[str, str], kind: str, predicate: dict[str, Any]) -> dict[str, Any]:
    return {
        "_type": STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in subject.items()],
        "predicateType": kind,
        "predicate": predicate,
    }


def _configuration(test: Tested) -> list[dict[str, Any]]:
    """What the test was computed from, and its settings: each a resource descriptor with a digest."""
    settings = json.dumps(test.settings, sort_keys=True, ensure_ascii=False).encode()
    named = {name: digest for name, digest in test.digests.items() if _SHA256.fullmatch(digest)}
    return [
        *({"name": name, "digest": {"sha256": digest}} for name, digest in named.items()),
        {
            "name": "settings",
            "digest": {"sha256": hashlib.sha256(settings).hexdigest()},
            "mediaType": "application/json",
            "annotations": {"kind": test.kind, "tested": test.name, "forgetgauge": test.environment.get("forgetgauge")},
        },
    ]
