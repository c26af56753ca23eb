"""Makes Python modules of the server's `.proto` files with protoc, in a folder that the process removes at its end.

In: the files as a backend's developer finds them -> out: modules with messages and stubs.
May use PyPI grpcio-tools; never a copy of generated code.
Calls stand in the tests.
"""

import atexit
import importlib
import sys
import tempfile
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_tools import protoc

_CRATES = Path(__file__).resolve().parents[3] / "crates"


def modules(folder, *files):
    """The messages and the stubs of each file in `crates/FOLDER/proto`."""
    out = tempfile.TemporaryDirectory(prefix="fanwire-proto-")
    atexit.register(out.cleanup)
    _compile(folder, files, f"--python_out={out.name}", f"--grpc_python_out={out.name}")
    sys.path.insert(0, out.name)
    names = [file.removesuffix(".proto") for file in files]
    return [importlib.import_module(name + part) for name in names for part in ("_pb2", "_pb2_grpc")]


def pool(folder, *files):
    """The descriptors of files whose messages another library of this process has as well."""
    with tempfile.TemporaryDirectory(prefix="fanwire-proto-") as out:
        _compile(folder, files, f"--descriptor_set_out={out}/set", "--include_imports")
        files = FileDescriptorSet.FromString((Path(out) / "set").read_bytes()).file
    own = DescriptorPool()
    for file in files:
        own.Add(file)
    return own


def _compile(folder, files, *outputs):
    if protoc.main(["protoc", f"-I{_CRATES / folder / 'proto'}", *outputs, *files]) != 0:
        raise AssertionError(f"protoc does not compile {files}")
