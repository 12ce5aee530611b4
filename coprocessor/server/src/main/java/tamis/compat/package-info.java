/**
 * Differences between the versions of HBase that one jar is for: methods that gained a parameter or whose types
 * changed, each of them behind a method that does not differ. Nothing else in the jar looks at a version.
 */
package tamis.compat;
