import type { Code } from '../errors/codes.js';
import { ERROR_SIGNS } from '../errors/error-signs.js';

/** Why a server fails, as its output shows it. The first sign that matches wins, so the narrow ones come first. */
const SIGNS: readonly (readonly [sign: RegExp, code: Code])[] = [
  [/\bEADDRINUSE\b|address already in use/i, 'TL-SERVER-PORT'],
  [
    /\b(?:ENOSPC|EMFILE|ENFILE)\b|no space left on device|too many open files|cannot allocate memory/i,
    'TL-SERVER-RESOURCES',
  ],
  [ERROR_SIGNS.certificate.text, 'TL-SERVER-CERTIFICATE'],
  [
    /GLIBC\w*_\d|node-gyp|\bgyp ERR|NODE_MODULE_VERSION|\.node'?: (?:invalid ELF|cannot open)|bindings file|dlopen/i,
    'TL-SERVER-NATIVE',
  ],
  [
    /\bERR_REQUIRE_ESM\b|Unexpected token '[?|&]{2}=?'|Unexpected token '\?\.'|is not supported by this version of Node|EBADENGINE|requires (?:a )?Node(?:\.js)? (?:version )?(?:>=|v?\d)/i,
    'TL-SERVER-OLD-RUNTIME',
  ],
  [
    /\b(?:Cannot find (?:module|package)|ERR_MODULE_NOT_FOUND|MODULE_NOT_FOUND|ModuleNotFoundError|ImportError|No module named)\b/,
    'TL-SERVER-MODULE',
  ],
  [
    /\b(?:401|403) |unauthori[sz]ed|invalid[ _-](?:api[ _-]?key|token)|bad credentials|authentication (?:failed|required)|(?:api[ _-]?key|token|credentials?|password|secret)\b.{0,40}\b(?:is |are |not |must )?(?:required|missing|not (?:set|provided|found)|be (?:set|provided)|invalid)|(?:missing|required|provide|set)\b.{0,40}\b\w*(?:api[ _-]?key|_key|token|credentials?|password|secret)\b/i,
    'TL-SERVER-UNAUTHORIZED',
  ],
  [ERROR_SIGNS.network.text, 'TL-SERVER-NETWORK'],
  [/\b(?:ENOENT|EACCES|EPERM|ENOTDIR|EROFS)\b|no such file or directory|permission denied/i, 'TL-SERVER-FILE'],
];

/** The code for what these lines say; `undefined` if they say nothing that is known. */
export function causeIn(lines: readonly string[]): Code | undefined {
  const text = lines.join('\n');
  return SIGNS.find(([sign]) => sign.test(text))?.[1];
}
