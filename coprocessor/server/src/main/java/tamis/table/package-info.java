/** Schemas, values, keys, conditions and their bytes, as tamis/table in C++ has them. Nothing here knows HBase. */
package tamis.table;
