"""Files that hold records: plain trees with arrays, one file each, and nothing that could run.

    0        8 bytes   magic
    8        4 bytes   version of the format, little-endian
    12       8 bytes   length of the header
    20       header    JSON: {"kind": ..., "arrays": [{"dtype", "shape", "order"}, ...], "record": tree}
    ...      arrays    one after another, each at the next multiple of 64, raw and little-endian
    -32      32 bytes  SHA-256 of all before it

Where arrays lie follows from their shapes, so that two cannot overlap, and the length of the file is known before
anything is allocated. ``order`` keeps the order of axes in memory: products of matrices round differently in another.
``container`` knows trees, ``codec`` turns records of the house into trees and back.
"""

from vff.storage.codec import Codec, forbid, permit, permit_scalar
from vff.storage.container import VERSION, Content, FileError, read_file, write_file
from vff.storage.writing import check_replaceable, check_writable, written_whole

__all__ = [
    "VERSION",
    "Codec",
    "Content",
    "FileError",
    "check_replaceable",
    "check_writable",
    "forbid",
    "permit",
    "permit_scalar",
    "read_file",
    "write_file",
    "written_whole",
]
