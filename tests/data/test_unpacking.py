import hashlib
import io
import tarfile

import pytest

from forgetgauge.data.download import unpack
from forgetgauge.data.files import File
from forgetgauge.errors import UserError
from tests.data.layouts import tar_of, zip_of

BODY = b"the content"
FILE = File("a.bin", len(BODY), hashlib.sha256(BODY).hexdigest())
PACKS = pytest.mark.parametrize("pack", [tar_of, zip_of])


def written(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@PACKS
def test_only_the_files_asked_for_are_written(pack, tmp_path):
    archive = tmp_path / "archive"
    archive.write_bytes(pack({"x/readme.html": b"no", "x/a.bin": BODY, "x/deep/b.bin": b"no"}))
    unpack(archive, [FILE], tmp_path / "out")
    assert written(tmp_path / "out") == {"a.bin": BODY}


@PACKS
@pytest.mark.parametrize("name", ["../../a.bin", "/etc/a.bin", "x/../../a.bin"])
def test_a_path_that_leads_out_is_not_followed(pack, name, tmp_path):
    folder = tmp_path / "deep" / "out"
    archive = tmp_path / "archive"
    archive.write_bytes(pack({name: BODY, "../../evil.bin": b"evil"}))
    unpack(archive, [FILE], folder)
    assert written(tmp_path) == {"archive": archive.read_bytes(), "deep/out/a.bin": BODY}


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE])
def test_a_link_or_device_in_the_place_of_a_file_is_refused(kind, tmp_path):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        info = tarfile.TarInfo("a.bin")
        info.type, info.linkname = kind, "/etc/passwd"
        tar.addfile(info)
    (tmp_path / "archive").write_bytes(buffer.getvalue())
    with pytest.raises(UserError, match=r"a\.bin is not a plain file"):
        unpack(tmp_path / "archive", [FILE], tmp_path / "out")
    assert written(tmp_path / "out") == {}


@PACKS
@pytest.mark.parametrize("content", [BODY[:-1], BODY + b"!", b"The content", b"0" * 10**6])
def test_a_member_of_other_content_never_gets_its_name(pack, content, tmp_path):
    (tmp_path / "archive").write_bytes(pack({"a.bin": content}))
    with pytest.raises(UserError, match=r"a\.bin in it is not the published file"):
        unpack(tmp_path / "archive", [FILE], tmp_path / "out")
    assert written(tmp_path / "out") == {}


@PACKS
def test_a_missing_member_is_named(pack, tmp_path):
    (tmp_path / "archive").write_bytes(pack({"b.bin": BODY}))
    with pytest.raises(UserError, match=r"holds no a\.bin$"):
        unpack(tmp_path / "archive", [FILE], tmp_path / "out")


@pytest.mark.parametrize(
    "content", [b"", b"no archive", tar_of({"a.bin": BODY * 9999})[:-40], zip_of({"a": BODY})[:-9]]
)
def test_what_is_no_archive_is_one_line(content, tmp_path):
    (tmp_path / "archive").write_bytes(content)
    with pytest.raises(UserError, match="archive") as refusal:
        unpack(tmp_path / "archive", [FILE], tmp_path / "out")
    assert "\n" not in str(refusal.value)
