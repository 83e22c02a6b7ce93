// The dashboard for Grafana, compared with the metrics of the built program.
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parser } from '@prometheus-io/lezer-promql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../support/free-port.js';
import type { Message } from '../support/gateway-process.js';
import { Place } from '../support/http-place.js';

const { panels, templating }: Message = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../deploy/grafana/trunkline.json'), 'utf8'),
);
const charts: Message[] = panels.filter(({ type }: Message) => type !== 'row');
const targets: { title: string; refId: string; expr: string; legendFormat: string }[] = charts.flatMap(
  ({ title, targets }) => targets.map((target: Message) => ({ title, ...target })),
);
/** Grafana knows these variables by itself. */
const BUILT_IN = ['__rate_interval', '__all'];
/** Prometheus adds these labels to every series. */
const ADDED = ['job', 'instance'];

/** The values of each label of each metric. */
type Exposed = ReadonlyMap<string, ReadonlyMap<string, ReadonlySet<string>>>;

/** The parts of a query that name metrics and labels. */
function partsOf(expr: string) {
  const selectors: { metric: string; matchers: { label: string; op: string; value: string }[] }[] = [];
  const groupings: string[][] = [];
  const faults: string[] = [];
  const query = expr.replaceAll('$__rate_interval', '5m');
  parser.parse(query).iterate({
    enter: ({ name, from, to, node, type }) => {
      const text = query.slice(from, to);
      if (type.isError) faults.push(`${query.slice(0, from)} HERE ${query.slice(from)}`);
      if (name === 'VectorSelector') selectors.push({ metric: text.split('{')[0] ?? '', matchers: [] });
      if (name === 'UnquotedLabelMatcher') {
        const { label = '', op = '', value = '' } = /^(?<label>\w+)(?<op>\W+)"(?<value>.*)"$/.exec(text)?.groups ?? {};
        selectors.at(-1)?.matchers.push({ label, op, value });
      }
      if (name === 'GroupingLabels')
        groupings.push(node.getChildren('LabelName').map((label) => query.slice(label.from, label.to)));
    },
  });
  return { selectors, groupings, faults };
}

describe('the dashboard', () => {
  let exposed: Exposed;
  const place = new Place();
  beforeAll(async () => {
    const sealKeyFile = place.file('key');
    writeFileSync(sealKeyFile, randomBytes(32).toString('base64'), { mode: 0o600 });
    // A gateway of a cluster serves without its store.
    const address = `127.0.0.1:${await freePort()}`;
    const cluster = { store: 'redis://127.0.0.1:1', advertise: address, listen: address };
    const running = await place.serve({ gateway: { sealKeyFile, cluster } });
    const client = await place.handshake(running);
    for (const name of ['lab__echo', 'lab__die', 'no_such_tool', 'lab__echo'])
      await client.request('tools/call', { name, arguments: {} });
    const { text } = await place.send(running, { method: 'GET', path: '/metrics', headers: { accept: '*/*' } });
    exposed = exposedIn(text);
    await client.end();
  });
  afterAll(() => place.dispose());

  it.each(targets)(
    'asks in query $refId of $title for metrics and labels that a gateway has',
    ({ expr, legendFormat }) => {
      const { selectors, groupings, faults } = partsOf(expr);
      expect(faults).toEqual([]);
      expect(selectors.length).toBeGreaterThan(0);
      const labels = selectors.map(({ metric }) => [...(exposed.get(metric)?.keys() ?? ['NO SUCH METRIC']), ...ADDED]);
      for (const [at, { matchers }] of selectors.entries()) {
        expect(labels[at]).toEqual(expect.arrayContaining(matchers.map(({ label }) => label)));
      }
      for (const grouping of groupings) expect(labels.flat()).toEqual(expect.arrayContaining(grouping));
      const named = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label);
      expect(groupings.flat()).toEqual(expect.arrayContaining(named));
    },
  );

  it('compares labels only with values that they can have', () => {
    const unknown = targets.flatMap(({ expr }) =>
      partsOf(expr).selectors.flatMap(({ metric, matchers }) =>
        matchers.flatMap(({ label, value }) => {
          const values = exposed.get(metric)?.get(label) ?? new Set();
          return value
            .split('|')
            .filter((each) => !each.startsWith('$') && !values.has(each))
            .map((each) => `${metric}{${label}="${each}"}`);
        }),
      ),
    );
    expect(unknown).toEqual([]);
  });

  it('uses only variables that it declares', () => {
    const declared = templating.list.map(({ name }: Message) => name);
    const used = [...JSON.stringify({ panels, templating }).matchAll(/\$\{?(\w+)/g)].map(([, name]) => name);
    expect([...declared, ...BUILT_IN]).toEqual(expect.arrayContaining(used));
    expect(used).toEqual(expect.arrayContaining(declared));
  });

  it('gives each panel a number, a title, a place of its own and queries with different names', () => {
    expect(new Set(panels.map(({ id }: Message) => id)).size).toBe(panels.length);
    expect(new Set(panels.map(({ title }: Message) => title)).size).toBe(panels.length);
    const taken = panels.flatMap(({ gridPos: { x, y, w, h } }: Message) =>
      Array.from({ length: w * h }, (_, at) => `${x + (at % w)} ${y + Math.floor(at / w)}`),
    );
    expect(new Set(taken).size).toBe(taken.length);
    expect(Math.max(...panels.map(({ gridPos: { x, w } }: Message) => x + w))).toBe(24);
    for (const { targets, datasource, type, fieldConfig } of charts) {
      expect(['stat', 'timeseries', 'table']).toContain(type);
      expect(fieldConfig.defaults.unit).toEqual(expect.any(String));
      expect(datasource).toEqual({ type: 'prometheus', uid: `\${datasource}` });
      expect(new Set(targets.map(({ refId }: Message) => refId)).size).toBe(targets.length);
    }
  });
});

/** Reads the text format of Prometheus. */
function exposedIn(text: string): Exposed {
  const found = new Map<string, Map<string, Set<string>>>();
  for (const [, metric = '', labels = ''] of text.matchAll(/^(\w+)(?:\{(.*)\})? \S+$/gm)) {
    const known = found.get(metric) ?? new Map<string, Set<string>>();
    found.set(metric, known);
    for (const [, label = '', value = ''] of labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g))
      known.set(label, (known.get(label) ?? new Set()).add(value));
  }
  return found;
}
