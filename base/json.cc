#include "base/json.h"

template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace blktape {

std::string JsonText(const Json& json, int indent) {
  return json.dump(indent, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
}

Json ParseJson(std::string_view text) {
  return Json::parse(text, /*cb=*/nullptr, /*allow_exceptions=*/false);
}

}  // namespace blktape
