#!/usr/bin/python3
"""Takes the kernel out of a compressed image: vmlinux.py VMLINUZ VMLINUX

An emulator boots it in a second, and the image, which the emulated processor would have to decompress, in five.
The image's layout: Documentation/arch/x86/boot.rst of the kernel's sources (payload_offset, payload_length).
"""

import gzip
import lzma
import os
import struct
import subprocess
import sys

SETUP_SECTORS, MAGIC, PAYLOAD = 0x1F1, 0x202, 0x248
FORMATS = (
    (b"\xfd7zXZ\0", lambda data: lzma.LZMADecompressor().decompress(data)),
    (b"\x28\xb5\x2f\xfd", lambda data: subprocess.run(["zstd", "-dcq"], input=data, stdout=subprocess.PIPE, check=True).stdout),
    (b"\x1f\x8b", gzip.decompress),
)


def unpack(image):
    if image[MAGIC:MAGIC + 4] != b"HdrS":
        raise ValueError("not an image of an x86 kernel")
    start, length = struct.unpack_from("<II", image, PAYLOAD)
    start += (image[SETUP_SECTORS] + 1) * 512
    payload = image[start:start + length - 4]  # without the size that ends it
    for magic, decompress in FORMATS:
        if payload.startswith(magic):
            kernel = decompress(payload)
            if kernel.startswith(b"\x7fELF"):
                return kernel
    raise ValueError("the kernel within is not an ELF file in xz, zstd or gzip")


def main():
    source, target = sys.argv[1:]
    with open(source, "rb") as file:
        image = file.read()
    try:
        kernel = unpack(image)
    except (ValueError, OSError, lzma.LZMAError, subprocess.CalledProcessError) as error:
        sys.exit("error: %s: %s" % (source, error))
    with open(target + ".new", "wb") as file:
        file.write(kernel)
    os.replace(target + ".new", target)


if __name__ == "__main__":
    main()
