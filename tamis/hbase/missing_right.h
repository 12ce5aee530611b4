// The refusal of HBase's AccessController, as a sentence that names the missing right and the
// command that grants it.
#pragma once

#include <string>
#include <string_view>

namespace tamis::hbase {

// For "Insufficient permissions (user=U, scope=S, family=F, params=[...],action=A)" and the like:
// "user U lacks the right A on S; an administrator grants it in HBase's shell: grant 'U', 'A',
// 'S'", and the text in parentheses. Another text is returned unchanged.
std::string ExplainMissingRight(std::string_view text);

}  // namespace tamis::hbase
