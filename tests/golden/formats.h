// The byte formats as text, each function one golden file (golden_writer.cc says how to read them).
#pragma once

#include <string>

namespace tamis {

std::string Codec();        // codec.txt
std::string Expressions();  // expressions.txt
std::string Hashes();       // hashes.txt
std::string Cells();        // cells.txt
std::string Decimals();     // decimals.txt
std::string Keys();         // keys.txt
std::string Rows();         // rows.txt
std::string Predicates();   // predicates.txt
std::string Filters();      // filters.txt
std::string CellMaps();     // cell_maps.txt
std::string Positions();    // positions.txt
std::string Messages();     // messages.txt

}  // namespace tamis
