/** Stands in each text of an attacker, so that it is found where it must not be. */
export const MARK = 'EVIL';
