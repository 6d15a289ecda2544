#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/io_record.h"

// Words and numbers as other programs write them. All exact: no number goes through a double unless
// it is written with an exponent.
namespace blktape {

std::string_view Trim(std::string_view text);

// "123"; blanks around it are allowed. Absent if it is anything else or does not fit.
std::optional<uint64_t> ParseUnsigned(std::string_view text);
// "1f", "0x1F".
std::optional<uint64_t> ParseHex(std::string_view text);

// "12.0345" in units of 10^-digits: ParseDecimal("12.0345", 9) is 12,034,500,000. A further digit
// rounds half up. A sign and an exponent are understood. Absent if it is no number or does not fit.
std::optional<int64_t> ParseDecimal(std::string_view text, int digits, char point = '.');

// The fields of `line`, as views of it. ' ' as separator stands for any run of blanks and tabs. A
// field in quotation marks may hold the separator; doubled marks inside stay doubled.
void SplitFields(std::string_view line, char separator, std::vector<std::string_view>* fields);

struct OpWord {
  Op op = Op::kRead;
  uint32_t flags = 0;
};
// "R", "write", "Trim", "unmap", "flush", "WSM" (as the kernel prints), or the number of a SCSI
// command as "0x28" or "2a" is not meant here. Absent: none of these.
std::optional<OpWord> ParseOp(std::string_view text);

// What a SCSI command does; absent for one that is no read, write or flush. (The ranges of an UNMAP
// and the length of a WRITE SAME lie in data that no trace of commands holds.)
std::optional<OpWord> ScsiOp(uint32_t command);

// Gives `io` an address in bytes. False if it was rounded down to a whole sector.
bool SetAddress(uint64_t offset_bytes, IoRecord* io);

// A flush has neither address nor data here.
void NormalizeFlushRecord(IoRecord* io);

// Lower case of the ASCII letters.
std::string Lower(std::string_view text);

// `head`, the first bytes of a file, as its whole lines: the last one only if it ends.
std::vector<std::string_view> WholeLines(std::string_view head);

}  // namespace blktape
