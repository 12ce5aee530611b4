/**
 * The classes that HBase loads by name, and the reports on an installation. The names `IndexObserver`,
 * `IndexSplitPolicy`, `SchemaGuard` and `ServerReport` stand in table descriptors and in hbase-site.xml, so they never
 * change; FormatsTest lists all such names.
 */
package tamis.hbase;
