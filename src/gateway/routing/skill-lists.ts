import type { Exchange } from '../../downstream/port.js';
import { isString, readString, valuesAt } from '../../json/json-text.js';
import { declaredSkills, SKILL_METHODS } from '../../mcp/extensions.js';
import type { Shadowed } from '../catalog/catalog.js';
import { answerList, listAllPages, PagedList, type Paging, type RawEntry } from '../catalog/pagination.js';
import type { Backend } from '../registry/backend.js';
import type { Router } from './router.js';

export interface SkillListsOptions {
  /** In the order of the configuration. */
  readonly backends: ReadonlyMap<string, Backend>;
  readonly paging: Paging;
  /** How long a list waits for a server that has skills and does not run, in milliseconds. */
  readonly startupWaitMs: number;
  /** Learns which servers own the skills. */
  readonly router: Pick<Router, 'noteSkills'>;
}

/**
 * The skills of all servers that have some (SEP-2640), merged in the order of the configuration. Their URIs stay as they
 * are, because skills refer to their files by them; of two skills with the same URI, the first one is listed.
 *
 * Few clients ask for skills, so the lists of the servers are read for each request.
 */
export class SkillLists {
  readonly #options: SkillListsOptions;
  #shadowed: readonly Shadowed[] = [];

  constructor(options: SkillListsOptions) {
    this.#options = options;
  }

  /** Whether any server has skills. */
  get isOffered(): boolean {
    return this.#offering.length > 0;
  }

  /** The skills that were not listed last time, because another server has a skill with the same URI. */
  get shadowed(): readonly Shadowed[] {
    return this.#shadowed;
  }

  /** Answers `skills/list`. A server that fails has no skills. */
  async answer(exchange: Exchange): Promise<void> {
    const { paging, router } = this.#options;
    const lists = await Promise.all(this.#offering.map((backend) => this.#read(backend)));
    const owners = new Map<string, string>();
    const shadowed: Shadowed[] = [];
    const entries: Uint8Array[] = [];
    for (const { key, skills } of lists) {
      for (const { uri, entry } of skills) {
        const owner = owners.get(uri);
        if (owner === undefined) {
          owners.set(uri, key);
          entries.push(entry);
        } else if (owner !== key) shadowed.push({ key, exposed: uri, owner });
      }
    }
    this.#shadowed = shadowed;
    router.noteSkills(owners);
    answerList(exchange, new PagedList('skills', entries, paging));
  }

  get #offering(): readonly Backend[] {
    return [...this.#options.backends.values()].filter(
      ({ handshake, isUnavailable }) => !isUnavailable && handshake && declaredSkills(handshake.capabilities),
    );
  }

  async #read(backend: Backend): Promise<SkillsOfServer> {
    const { key, dispatcher } = backend;
    if (backend.openConnection === undefined) await backend.untilOpen(this.#options.startupWaitMs);
    const connection = backend.openConnection;
    if (connection === undefined) return { key, skills: [] };
    const list = await listAllPages(connection, SKILL_LIST, dispatcher.listTimeouts);
    return { key, skills: list.kind === 'failed' ? [] : list.entries.flatMap(toSkill) };
  }
}

interface SkillsOfServer {
  readonly key: string;
  readonly skills: readonly { readonly uri: string; readonly entry: Uint8Array }[];
}

function toSkill({ bytes, isTooLarge }: RawEntry): SkillsOfServer['skills'] {
  const [uri] = valuesAt(bytes, { start: 0, end: bytes.length }, ['uri']);
  if (isTooLarge === true || uri === undefined || !isString(bytes, uri)) return [];
  return [{ uri: readString(bytes, uri), entry: bytes }];
}

const SKILL_LIST = { method: SKILL_METHODS.list, token: 'resultSkills' } as const;
