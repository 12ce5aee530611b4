/**
 * Errors, pauses and the switches of tests, which all other packages use. The switches (`Fault`) break one rule each,
 * so that a test can show that the rule is needed.
 */
package tamis.base;
