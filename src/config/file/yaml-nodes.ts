import { type Alias, isAlias, isMap, isScalar, isSeq, type Node, type Pair, type YAMLMap } from 'yaml';

export type Path = readonly PropertyKey[];

/** A mistake, and its place in the text. */
interface NodeProblem {
  readonly message: string;
  readonly offset: number;
}

/**
 * How many nodes all aliases together may stand for. Some lines can stand for so many that no memory holds them: a list
 * of aliases of a list of aliases, and so on.
 */
const MAX_ALIASED_NODES = 50_000;

/**
 * The nodes of a YAML document: their mistakes that are no mistakes of syntax, and their places. It looks at each node
 * once, and finds a place without a search: the time grows with the text, and no faster.
 */
export class YamlNodes {
  readonly problems: NodeProblem[] = [];
  readonly #root: unknown;
  /** By anchor: the last node with it so far, and how many nodes it has when its own aliases are expanded. */
  readonly #anchors = new Map<string, { readonly node: Node; size: number }>();
  readonly #targets = new Map<Alias, Node>();
  readonly #pairs = new Map<YAMLMap, Map<unknown, Pair>>();
  #aliasedNodes = 0;

  constructor(root: unknown) {
    this.#root = root;
    this.#look(root);
  }

  /** The offset of a value or key. A path may lead to a missing value; then the offset is that of its nearest ancestor. */
  offsetOf(path: Path, part: 'key' | 'value'): number {
    let node = this.#root;
    let offset = startOf(node) ?? 0;
    for (const [depth, step] of path.entries()) {
      const parent = isAlias(node) ? this.#targets.get(node) : node;
      let key: unknown;
      if (isMap(parent)) {
        const pair = this.#pairs.get(parent)?.get(step);
        key = pair?.key;
        node = pair?.value;
      } else {
        node = isSeq(parent) ? parent.items[Number(step)] : undefined;
      }
      const wantsKey = depth === path.length - 1 && part === 'key';
      const isEmpty = isScalar(node) && node.value === null;
      offset = (wantsKey || isEmpty ? startOf(key) : undefined) ?? startOf(node) ?? startOf(key) ?? offset;
    }
    return offset;
  }

  /** Returns the number of nodes in this one, with aliases expanded. */
  #look(node: unknown): number {
    if (isAlias(node)) return this.#lookAtAlias(node);
    if (!isMap(node) && !isSeq(node) && !isScalar(node)) return 1;
    // An alias inside the node that it stands for is a mistake that the library reports.
    const known = { node, size: 1 };
    if (node.anchor !== undefined) this.#anchors.set(node.anchor, known);
    if (isMap(node)) known.size += this.#lookAtPairs(node);
    if (isSeq(node)) for (const item of node.items) known.size += this.#look(item);
    return known.size;
  }

  #lookAtAlias(alias: Alias): number {
    const known = this.#anchors.get(alias.source);
    if (known === undefined) {
      this.#report(alias, 'this alias has no anchor; define the anchor above it');
      return 1;
    }
    this.#targets.set(alias, known.node);
    const before = this.#aliasedNodes;
    this.#aliasedNodes += known.size;
    const isTooMuch = before <= MAX_ALIASED_NODES && this.#aliasedNodes > MAX_ALIASED_NODES;
    if (isTooMuch) this.#report(alias, 'too many aliases to expand; use fewer');
    return known.size;
  }

  #lookAtPairs(map: YAMLMap): number {
    const pairs = new Map<unknown, Pair>();
    this.#pairs.set(map, pairs);
    let size = 0;
    for (const pair of map.items) {
      const { key, value } = pair;
      const name = isScalar(key) ? key.value : undefined;
      if (name === '__proto__') this.#report(key, 'the key `__proto__` is not allowed; choose another key');
      if (name !== undefined && pairs.has(name)) {
        this.#report(key, `the key \`${String(name)}\` is used twice; rename or remove one of the two`);
      } else if (name !== undefined) {
        pairs.set(name, pair);
      }
      size += this.#look(key) + this.#look(value);
    }
    return size;
  }

  #report(node: unknown, message: string): void {
    this.problems.push({ message, offset: startOf(node) ?? 0 });
  }
}

function startOf(node: unknown): number | undefined {
  return isMap(node) || isSeq(node) || isScalar(node) || isAlias(node) ? node.range?.[0] : undefined;
}
