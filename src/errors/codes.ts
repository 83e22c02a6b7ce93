import { CALL_CODES } from './call-codes.js';
import { CLIENT_CODES } from './client-codes.js';
import type { CodeEntry } from './code-entry.js';
import { CONFIG_CODES } from './config-codes.js';
import { MACHINE_CODES } from './machine-codes.js';
import { SERVER_CODES } from './server-codes.js';

/** All codes by area, in the order in which people read about them. */
export const AREAS = [
  { title: 'Machine', codes: MACHINE_CODES },
  { title: 'Configuration', codes: CONFIG_CODES },
  { title: 'Clients and processes', codes: CLIENT_CODES },
  { title: 'Servers', codes: SERVER_CODES },
  { title: 'Calls', codes: CALL_CODES },
] as const;

const ALL = { ...MACHINE_CODES, ...CONFIG_CODES, ...CLIENT_CODES, ...SERVER_CODES, ...CALL_CODES };

/** A stable name for one kind of finding or failure. */
export type Code = keyof typeof ALL;

/** What each code stands for. */
export const CODES: Readonly<Record<Code, CodeEntry>> = ALL;
