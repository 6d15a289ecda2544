#include "format/trace_end.h"

#include <string_view>
#include <utility>

#include "format/frame_reader.h"
#include "format/message_stream.h"
#include "format/seek_table.h"

namespace blktape {

Result<std::optional<TraceEnd>> ReadTraceEnd(ByteSource* source) {
  const std::optional<TraceEnd> none;
  ASSIGN_OR_RETURN(const std::optional<FrameExtent> last, FindLastFrame(source));
  if (!last) return none;
  RETURN_IF_ERROR(source->Seek(last->offset_bytes));
  FrameReader frames(source, last->offset_bytes);
  ASSIGN_OR_RETURN(const FrameReader::Event event, frames.Next());
  if (event.kind != FrameReader::Kind::kFrame) return none;
  std::string_view content = frames.content();
  proto::Message start;
  proto::Message message;
  if (!TakeDelimited(&content, &start) || !start.has_frame() ||
      !TakeDelimited(&content, &message) || !message.has_summary()) {
    return none;
  }
  return std::optional(TraceEnd{std::move(*message.mutable_summary()), start.frame().trace(),
                                last->offset_bytes, frames.offset()});
}

}  // namespace blktape
