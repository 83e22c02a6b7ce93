import type { Exchange } from '../../downstream/port.js';
import { stringAt, valuesAt } from '../../wire/json/json-text.js';
import { declaredSkills, SKILL_METHODS } from '../../wire/mcp/extensions.js';
import type { Shadowed } from '../catalog/catalog.js';
import { answerList, listAllPages, PagedList, type Paging, type RawEntry } from '../catalog/pagination.js';
import type { Backend } from '../registry/backend.js';
import type { KnownUris } from './resource-owner.js';

export interface SkillListsOptions {
  readonly backends: ReadonlyMap<string, Backend>;
  readonly paging: Paging;
  /** Longest wait of a list of skills for a server that has skills and does not run, in milliseconds. */
  readonly startupWaitMs: number;
}

/**
 * The skills of all servers that have some (SEP-2640), merged in the order of the configuration. Their URIs stay
 * unchanged, because skills refer to their files by URI. If two skills have the same URI, the first one is listed.
 *
 * The lists of the servers are read for each request, because few clients ask for skills.
 */
export class SkillLists {
  /** The skills that the last list left out, because another server has a skill with the same URI. */
  shadowed: readonly Shadowed[] = [];
  readonly #options: SkillListsOptions;
  readonly #uris: KnownUris;

  constructor(options: SkillListsOptions, uris: KnownUris) {
    this.#options = options;
    this.#uris = uris;
  }

  get isOffered(): boolean {
    return this.#offering.length > 0;
  }

  /** Answers `skills/list`. Leaves out the skills of a server that fails. */
  async answer(exchange: Exchange): Promise<void> {
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
    this.shadowed = shadowed;
    this.#uris.noteSkills(owners);
    answerList(exchange, new PagedList('skills', entries, this.#options.paging));
  }

  get #offering(): readonly Backend[] {
    return [...this.#options.backends.values()].filter(
      ({ handshake, isUnavailable }) => !isUnavailable && handshake && declaredSkills(handshake.capabilities),
    );
  }

  async #read(backend: Backend) {
    const { key, dispatcher } = backend;
    if (backend.openConnection === undefined) await backend.untilOpen(this.#options.startupWaitMs);
    const connection = backend.openConnection;
    if (connection === undefined) return { key, skills: [] };
    const list = await listAllPages(connection, SKILL_LIST, dispatcher.listTimeouts);
    return { key, skills: list.kind === 'failed' ? [] : list.entries.flatMap(toSkill) };
  }
}

function toSkill({ bytes, isTooLarge }: RawEntry) {
  const uri = stringAt(bytes, valuesAt(bytes, { start: 0, end: bytes.length }, ['uri'])[0]);
  return isTooLarge === true || uri === undefined ? [] : [{ uri, entry: bytes }];
}

const SKILL_LIST = { method: SKILL_METHODS.list, token: 'resultSkills' } as const;
