import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type Linked, LinkedList } from '../../../src/gateway/dispatch/linked-list.js';

interface Node extends Linked<Node> {
  readonly name: number;
}

it('a linked list keeps the order in which nodes were added, whichever are removed', () => {
  fc.assert(
    fc.property(fc.array(fc.nat({ max: 9 })), (names) => {
      const nodes: Node[] = Array.from({ length: 10 }, (_, name) => ({ name }));
      const list = new LinkedList<Node>();
      let expected: number[] = [];
      for (const name of names) {
        const node = nodes[name];
        if (node === undefined) continue;
        const isKnown = expected.includes(name);
        expect(list.delete(node)).toBe(isKnown);
        if (!isKnown) list.add(node);
        expected = isKnown ? expected.filter((each) => each !== name) : [...expected, name];
        const found: number[] = [];
        for (let each = list.first; each !== undefined; each = each.next) found.push(each.name);
        expect(found).toEqual(expected);
        expect([list.size, list.last?.name]).toEqual([expected.length, expected.at(-1)]);
      }
    }),
  );
});
