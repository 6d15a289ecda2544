#include "base/utf8.h"

#include <gtest/gtest.h>

namespace blktape {
namespace {

TEST(Utf8Test, WellFormedTextStaysAsItIs) {
  for (const char* text : {"", "vim", "Gr\xC3\xBC\xC3\x9F", "\xE2\x82\xAC", "\xF0\x9F\x92\xBE",
                           "\xF4\x8F\xBF\xBF", "\xED\x9F\xBF", "\xEE\x80\x80"}) {
    EXPECT_TRUE(IsUtf8(text)) << text;
    EXPECT_EQ(ToUtf8(text), text);
  }
}

TEST(Utf8Test, EachByteThatBelongsToNoCharacterIsReplaced) {
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(ToUtf8("a\xFFz"), "a" + bad + "z");
  EXPECT_EQ(ToUtf8("\xC0\xAF"), bad + bad);                      // overlong
  EXPECT_EQ(ToUtf8("\xE0\x80\xAF"), bad + bad + bad);            // overlong
  EXPECT_EQ(ToUtf8("\xED\xA0\x80"), bad + bad + bad);            // a surrogate
  EXPECT_EQ(ToUtf8("\xF4\x90\x80\x80"), bad + bad + bad + bad);  // above U+10FFFF
  EXPECT_EQ(ToUtf8("cut\xE2\x82"), "cut" + bad + bad);
  EXPECT_FALSE(IsUtf8("cut\xE2\x82"));
}

TEST(Utf8Test, ControlCharactersCannotSteerATerminal) {
  EXPECT_EQ(ToPrintable("ok \xC3\xBC"), "ok \xC3\xBC");
  EXPECT_EQ(ToPrintable("\x1B[31mred\n\x7F"), "?[31mred??");
  EXPECT_EQ(ToPrintable("\xC2\x9B"
                        "2J"),
            "?2J");  // CSI as one character
}

TEST(Utf8Test, OfSeveralLinesTheBreaksStayAndWhatSteersATerminalGoes) {
  EXPECT_EQ(ToPrintableLines("one\n\x1B[2Jtwo\r\n"), "one\n?[2Jtwo?\n");
}

}  // namespace
}  // namespace blktape
