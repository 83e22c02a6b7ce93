// All kinds of hostile servers. A kind is a name, what the server does (the hooks of `servers/attacker.mjs`), and what
// must hold besides what holds for all: see `run.mjs`. `attackers` is how many of them attack at once.
import { lists } from './lists.mjs';
import { malformed } from './malformed.mjs';
import { messages } from './messages.mjs';
import { processes } from './processes.mjs';

export { MARK } from './mark.mjs';
export const KINDS = [...malformed, ...messages, ...lists, ...processes];
