import { useSignal } from '@preact/signals';
import { plural } from '../gateway/status/status-text.js';
import type { AdvisedView, ToolLists, ToolRow } from '../web/contract.js';
import { changeConfig, review, showDefinition } from './changes.js';
import { queried } from './route.js';
import { hub, revision } from './state.js';
import { matches, number } from './text.js';
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
  const [words, state, server] = [queried('words'), queried('state'), queried('server')];
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
      <Table
        caption={view.name === '' ? 'Tools of clients without a view' : `Tools of the view ${view.name}`}
        by={by}
        rows={found}
        keyOf={({ server: key, name, state: own }) => `${key} ${name} ${own}`}
        columns={[
          ['Tool', (tool) => <Name tool={tool} view={view.name} />],
          ['Server', (tool) => whole(tool.server)],
          ['Tokens', ({ tokens }) => <Size tokens={tokens} largest={largest} />, ({ tokens }) => tokens],
          ['State', (tool) => <Shown {...tool} />],
          ['Action', (tool) => <Switch tool={tool} lists={lists} />],
        ]}
      />
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

/** Name of a tool. That of a shown tool opens its definition. */
function Name({ tool: { name, title, state }, view }: { tool: ToolRow; view: string }) {
  const code = <code>{foreign(name)}</code>;
  const open = () => showDefinition(name, view);
  return (
    <>
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
  return <span class={`state ${tone}`}>{prose(because === '' ? state : `${word}, because ${because}`)}</span>;
}

/** Button that hides a tool, shows it again, or opens its approval. */
function Switch({ tool: { server, original, name, state }, lists }: { tool: ToolRow; lists: readonly ToolLists[] }) {
  const { deny = [], allow = [] } = lists.find((each) => each.server === server) ?? {};
  const change = (label: string, next: { deny?: readonly string[]; allow?: readonly string[] }) => {
    const open = () => changeConfig(`${label} ${name}`, { server, ...next });
    return <Change label={label} about={name} run={open} />;
  };
  if (server === 'trunkline') return null;
  if (state === 'shown') return change('Hide', { deny: [...deny, original] });
  if (state === 'unapproved') return <Action label="Review" about={server} run={() => review(server)} />;
  if (state !== 'denied') return null;
  if (deny.includes(original)) return change('Show', { deny: deny.filter((each) => each !== original) });
  // A pattern in `deny` is for a person to change. Without one, the tool is missing in `allow`.
  return deny.length === 0 && allow.length > 0 ? change('Show', { allow: [...allow, original] }) : null;
}
