"""These tables say which calls import, read or write files, or ask the surroundings, by their name or the end of it."""

from __future__ import annotations

import re

MAY_CALL = re.compile(
    r"import_module|__import__|spec_from_file_location|SourceFileLoader|run_path|run_module|(?<![.\w])(?:exec|eval|globals)\("
    r"|pkgutil|importlib\.(?:resources|metadata)|platform|gethostname|getuser|uname"
    r"|getenv|environ|argv|urlopen|sys\.modules|subprocess|popen|os\.system|listdir|scandir|os\.walk|glob|sqlite3|exists\(|is_?file\("
    r"|is_?dir\(|iterdir|getsize|getmtime|\.stat\(|\bload|loadtxt|genfromtxt|from_pretrained|fromfile|from_file|memmap|\bread"
    r"|ZipFile|TarFile|FileIO|h5py"
    r"|imread|\bopen\b|getlines?\(|get_data|\bET\b|etree|[\"'][\w./~ -]*\w[./]\w[\w./ -]*[\"']"
)
"""Source without any of these has nothing to be found here; most has not, and need not be parsed."""

# -- what imports, or runs code ----------------------------------------------------------------------------------------

BY_NAME = frozenset({"import_module", "__import__", "run_module"})
BY_FILE = frozenset({"run_path", "spec_from_file_location", "SourceFileLoader"})

# -- what reads --------------------------------------------------------------------------------------------------------

READERS = frozenset(
    {"load_file", "loadtxt", "genfromtxt", "fromfile", "from_file", "memmap", "loadmat", "imread"}
    | {"from_pretrained", "read_csv"}
)
"""Whoever's they are."""
READERS_OF_LIBRARIES = re.compile(
    r"pandas\.read_\w+|xml\.etree\.\w+\.parse|linecache\.getlines?|fileinput\.input|zipfile\.ZipFile|tarfile\.TarFile"
    r"|_?io\.FileIO|h5py\.File|torchvision\.io\.read_\w+|pathlib\.\w+\.read_(?:text|bytes)"
)
LOADERS = frozenset({"torch", "np", "numpy", "pickle", "joblib"})
"""Modules whose `load` reads a file."""
LOOKS_READING = re.compile(r"_*(?:read|load|open|parse|get|from)", re.IGNORECASE)
SURELY_READING = re.compile(r"_*(?:read|load|open)", re.IGNORECASE)

# -- what writes -------------------------------------------------------------------------------------------------------

SURELY_WRITING = re.compile(
    r"(?!\w*(?:load|read|open))(?:(?:np_)?save(?:z|z_compressed|txt|fig|mat|_\w+)?|dump|write_\w+|export(?:_\w+)?"
    r"|to_(?:csv|json|pickle|parquet|hdf|feather|excel)|FileHandler)"
)
LOOKS_WRITING = re.compile(
    r"save|write|dump|export|log|lock|handler|config|make|mkd|remove|unlink|rmtree|touch|rename|replace|copy|move|print"
    r"|append|store|memory|cache|^to",
    re.IGNORECASE,
)

# -- what asks the surroundings ----------------------------------------------------------------------------------------

OUTSIDE = re.compile(
    r"subprocess\.\w+|glob\.\w+|sqlite3\.connect|pkgutil\.\w+|globals|urllib\.request\.urlopen"
    r"|importlib\.(?:resources|metadata)\.\w+|platform\.\w+|socket\.gethostname|getpass\.getuser|os\.uname"
    r"|os\.(?:popen|system|listdir|scandir|f?walk|stat|path\.(?:l?exists|isfile|isdir|getsize|getmtime))"
)
OUTSIDE_OF_PATHS = frozenset({"exists", "is_file", "is_dir", "iterdir", "glob", "rglob"})
HELD_OUTSIDE = frozenset({"os.environ", "os.environb", "sys.argv", "sys.orig_argv", "sys.modules"})
