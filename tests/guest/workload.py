"""What the tests in guests record: /workload, which SCRIPT lays down, works on the NVMe disk."""

MODULES = ["ext4"]
PROGRAMS = ["mkfs.ext4", "dd", "blkdiscard", "fstrim", "mount", "umount"]

# File system work and direct I/O of every kind the disk knows; ends when all of it has reached the disk.
SCRIPT = r"""
cat > /workload <<'END'
set -eu
disk=/dev/nvme0n1
mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0,nodiscard $disk
mount $disk /mnt
for i in $(seq 1 40); do
  dd if=/dev/urandom of=/mnt/file$i bs=1k count=$((i * 3)) conv=fsync 2> /dev/null
done
cp -r /mnt /mnt/../tmp/copy
rm /mnt/file1 /mnt/file2*
mv /mnt/file3 /mnt/file4
sync
fstrim /mnt
umount /mnt
dd if=$disk of=/dev/null bs=64k count=100 iflag=direct 2> /dev/null
dd if=/dev/urandom of=$disk bs=4k count=64 seek=900 oflag=direct 2> /dev/null
dd if=/dev/urandom of=$disk bs=4k count=16 seek=2000 oflag=direct,dsync 2> /dev/null
blkdiscard -o 64M -l 8M $disk
blkdiscard -z -o 96M -l 2M $disk
sync
END
"""
