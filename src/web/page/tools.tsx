import { type Signal, useSignal } from '@preact/signals';
import { plural } from '../../wire/json/printable.js';
import type { AdvisedView, ToolLists, ToolRow } from '../server/contract.js';
import { changeConfig, review, showDefinition } from './changes.js';
import { queried } from './route.js';
import { hello, hub, revision } from './state.js';
import { matches, number } from './text.js';
import { changesFor, switchOf } from './tool-changes.js';
import {
  Action,
  Change,
  Choice,
  foreign,
  optionsOf,
  prose,
  Search,
  Table,
  useRead,
  Waiting,
  whole,
} from './widgets.js';

export function Tools() {
  const { answer, fault } = useRead('GET /tools', {}, revision.value, hub.value?.kind === 'running');
  if (hub.value?.kind === 'none') return <p>No hub runs, so no tools are listed.</p>;
  if (answer === undefined) return <Waiting fault={fault} />;
  const { views, lists } = answer;
  const view = views.find(({ name }) => name === queried('view')) ?? views[0];
  return view === undefined ? (
    <p>There is no view.</p>
  ) : (
    <View key={view.name} view={view} views={views} lists={lists} />
  );
}

function View(props: { view: AdvisedView; views: readonly AdvisedView[]; lists: readonly ToolLists[] }) {
  const { view, views, lists } = props;
  const by = useSignal('Tokens');
  const words = queried('words');
  const state = queried('state');
  const server = queried('server');
  const found = view.tools.filter(
    (tool) =>
      (state === '' || (state === 'shown') === (tool.state === 'shown')) &&
      (server === '' || tool.server === server) &&
      matches(`${tool.name} ${tool.server}__${tool.original} ${tool.title} ${tool.because} ${tool.state}`, words),
  );
  const shown = view.tools.filter((tool) => tool.state === 'shown');
  const own = shown.filter((tool) => tool.server === 'trunkline').length;
  const largest = Math.max(1, ...shown.map(({ tokens }) => tokens));
  const servers = view.tools.map((tool) => tool.server);
  const picked = useSignal<ReadonlySet<string>>(new Set());
  const viewOptions = views.map(({ name, tokens }) => {
    return [name, `${name === '' ? 'no view' : `view ${name}`}, ${number(tokens)} tokens`] as const;
  });
  return (
    <>
      <search class="filters">
        <Search label="Filter the tools" />
        {views.length > 1 && <Choice label="View" name="view" options={viewOptions} />}
        <Choice label="Server" name="server" options={optionsOf('all servers', 'server', servers)} />
        <Choice label="State" name="state" options={optionsOf('shown and hidden', 'state', ['shown', 'hidden'])} />
      </search>
      <p class="quiet">
        {plural(shown.length - own, 'tool')} shown{own > 0 && `, and ${own} of Trunkline itself`};{' '}
        {number(view.tools.length - shown.length)} hidden. A model that gets the whole list reads about{' '}
        <b>{number(view.tokens)} tokens</b>
        {view.clients.length > 0 && foreign(`, in ${[...new Set(view.clients)].join(', ')}`)}.
        {view.mode === 'search' && ` In search mode, it reads about ${number(view.searchTokens)} tokens instead.`}
        {view.mode === 'auto' &&
          ` A client that needs search mode reads about ${number(view.searchTokens)} tokens instead.`}
      </p>
      <All tools={found} lists={lists} picked={picked} />
      {found.length === 0 ? (
        <p>No tool matches the filter.</p>
      ) : (
        <Table
          caption={view.name === '' ? 'Tools of clients without a view' : `Tools of the view ${view.name}`}
          by={by}
          rows={found}
          keyOf={({ server: key, name, state: own }) => `${key} ${name} ${own}`}
          columns={[
            ['Tool', (tool) => <Name tool={tool} view={view.name} lists={lists} picked={picked} />],
            ['Server', (tool) => whole(tool.server)],
            ['Tokens', ({ tokens }) => <Size tokens={tokens} largest={largest} />, ({ tokens }) => tokens],
            ['State', (tool) => <Shown {...tool} />],
            ['Action', (tool) => <Switch tool={tool} lists={lists} />],
          ]}
        />
      )}
      <Picked tools={view.tools} lists={lists} picked={picked} />
      {view.advice.length > 0 && (
        <>
          <h2>To save tokens</h2>
          <ul>
            {view.advice.map(({ text, server, yaml }) => (
              <li key={`${server} ${yaml}`}>
                {foreign(text)} In the entry of {foreign(server)}: <code>{foreign(yaml)}</code>
              </li>
            ))}
          </ul>
        </>
      )}
    </>
  );
}

/** Tools that are chosen, to change them together. */
type Picks = Signal<ReadonlySet<string>>;

function pickOf({ server, original }: ToolRow): string {
  return `${server} ${original}`;
}

function pick(picked: Picks, tools: readonly ToolRow[], isPicked: boolean): void {
  const next = new Set(picked.value);
  for (const tool of tools) next[isPicked ? 'add' : 'delete'](pickOf(tool));
  picked.value = next;
}

interface PickProps extends PickingProps {
  tools: readonly ToolRow[];
}

interface PickingProps {
  lists: readonly ToolLists[];
  picked: Picks;
}

/** Checkbox that chooses all tools of the list that can be hidden or shown. */
function All({ tools, lists, picked }: PickProps) {
  const own = tools.filter((tool) => switchOf(tool, lists) !== null);
  if (hello.value?.isReadOnly !== false || own.length < 2) return null;
  const count = own.filter((tool) => picked.value.has(pickOf(tool))).length;
  return (
    <p>
      <label class="pick">
        <input
          type="checkbox"
          checked={count === own.length}
          indeterminate={count > 0 && count < own.length}
          onChange={(event) => pick(picked, own, event.currentTarget.checked)}
        />
        Choose all {number(own.length)} tools of this list that can be hidden or shown
      </label>
    </p>
  );
}

/** Buttons that hide or show the chosen tools of all servers with one change of the configuration. */
function Picked({ tools, lists, picked }: PickProps) {
  const chosen = tools.filter((tool) => picked.value.has(pickOf(tool)));
  if (chosen.length === 0) return null;
  const clear = () => {
    picked.value = new Set();
  };
  return (
    <section class="picked row" aria-label="Chosen tools">
      <b role="status">{plural(chosen.length, 'tool')} chosen</b>
      {(['hide', 'show'] as const).map((way) => {
        const own = chosen.filter((tool) => switchOf(tool, lists) === way);
        const label = `${way === 'hide' ? 'Hide' : 'Show'} ${plural(own.length, 'tool')}`;
        const open = () => changeConfig(label, changesFor(way, own, lists), clear);
        return own.length > 0 && <Change key={way} label={label} kind="primary" run={open} />;
      })}
      <button type="button" onClick={clear}>
        Choose none
      </button>
    </section>
  );
}

/** Name of a tool. If the tool is shown, a click on the name opens its definition. */
function Name({ tool, view, lists, picked }: PickingProps & { tool: ToolRow; view: string }) {
  const { name, title, state } = tool;
  const code = <code>{foreign(name)}</code>;
  const open = () => showDefinition(name, view);
  return (
    <>
      {hello.value?.isReadOnly === false &&
        (switchOf(tool, lists) === null ? (
          <span class="unpickable" />
        ) : (
          <input
            type="checkbox"
            aria-label={`Choose ${foreign(name)}`}
            checked={picked.value.has(pickOf(tool))}
            onChange={(event) => pick(picked, [tool], event.currentTarget.checked)}
          />
        ))}{' '}
      {state !== 'shown' ? (
        code
      ) : (
        <button type="button" class="link" onClick={open}>
          {code}
        </button>
      )}{' '}
      <span class="quiet">{title !== name && foreign(title)}</span>
    </>
  );
}

function Size({ tokens, largest }: { tokens: number; largest: number }) {
  return (
    <span class="measured">
      <svg class="bar" width="64" height="6" aria-hidden="true">
        <rect width={Math.round((tokens / largest) * 64)} height="6" />
      </svg>
      <span>{number(tokens)}</span>
    </span>
  );
}

function Shown({ state, because }: ToolRow) {
  const word = state === 'denied' || state === 'outside' ? 'hidden' : state;
  const tone = { shown: 'good', quarantined: 'bad', unapproved: 'busy' }[state as string] ?? 'off';
  if (because === '') return <span class={`state whole ${tone}`}>{state}</span>;
  return <span class={`state ${tone}`}>{prose(`${word}, because ${because}`)}</span>;
}

/** Button that hides a tool, shows it again, or opens its approval. */
function Switch({ tool, lists }: { tool: ToolRow; lists: readonly ToolLists[] }) {
  const { server, name, state } = tool;
  if (state === 'unapproved') return <Action label="Review" about={server} run={() => review(server)} />;
  const way = switchOf(tool, lists);
  if (way === null) return null;
  const label = way === 'hide' ? 'Hide' : 'Show';
  const open = () => changeConfig(`${label} ${name}`, changesFor(way, [tool], lists));
  return <Change label={label} about={name} run={open} />;
}
