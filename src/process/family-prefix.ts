/**
 * Begins the name of the variable that marks the processes of one launch of a server. The mark is in the name and not in the
 * value, so that a server of a nested Trunkline bears the marks of both.
 */
export const FAMILY_PREFIX = 'TRUNKLINE_FAMILY_';
