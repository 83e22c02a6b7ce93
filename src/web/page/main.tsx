import { effect, signal } from '@preact/signals';
import { render } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { duration } from '../../status/status-text.js';
import { Calls } from './calls.js';
import { Dialogs, Undo } from './changes.js';
import { Clients } from './clients.js';
import { Logins } from './logins.js';
import { Needs } from './needs.js';
import { Recording } from './recording.js';
import { addressOf, hash, PARTS, type Part, route, TITLES } from './route.js';
import { announcement, tellOfChanges } from './say.js';
import { Server } from './server.js';
import { Servers } from './servers.js';
import { CODE, endSession, headers, openSession, session } from './session.js';
import {
  configFile,
  description,
  heardAt,
  hello,
  hub,
  needs,
  receive,
  recording,
  replacements,
  report,
} from './state.js';
import { link, Stream } from './stream.js';
import { clock } from './text.js';
import { Tools } from './tools.js';
import { Card, type CardProps, Command, foreign, prose, Select, Waiting } from './widgets.js';

const VIEWS: Readonly<Record<Part, () => preact.ComponentChild>> = {
  needs: Needs,
  servers: Servers,
  calls: Calls,
  tools: Tools,
  clients: Clients,
  logins: Logins,
  recording: Recording,
};

const THEME = 'trunkline-theme';
const theme = signal(localStorage.getItem(THEME) ?? 'system');
const setTheme = (value: string) => {
  theme.value = value;
};

/** Numbers beside the links of parts. They are undefined until they are known. */
const COUNTS: Readonly<Partial<Record<Part, () => number | undefined>>> = {
  needs: () => needs.value?.length,
  servers: () => (hub.value?.kind === 'none' ? hub.value.servers.length : report.value?.servers.length),
  tools: () => report.value?.tools,
  clients: () => description.value?.clients.length,
};

const THEMES = [
  ['system', 'System theme'],
  ['light', 'Light'],
  ['dark', 'Dark'],
] as const;

function Page() {
  const { part, item } = route.value;
  const heading = useRef<HTMLHeadingElement>(null);
  const View = VIEWS[part];
  const isServer = part === 'servers' && item !== undefined;
  const title = isServer ? item : TITLES[part];
  const skip = (event: Event) => {
    event.preventDefault();
    heading.current?.focus();
  };
  useEffect(() => {
    document.title = `${title} · Trunkline`;
    // A link that went away with its part leaves the focus nowhere.
    if (document.activeElement === document.body) heading.current?.focus({ preventScroll: true });
  }, [title]);
  return (
    <>
      <header>
        <a class="skip" href={hash.value} onClick={skip}>
          Skip to the content
        </a>
        <strong>Trunkline</strong>
        <Service />
        <Configuration />
        <Select label="Theme" value={theme.value} options={THEMES} onChange={setTheme} />
        <nav aria-label="Parts">
          {PARTS.map((name) => (
            <a key={name} href={addressOf(name)} aria-current={part === name ? 'page' : undefined}>
              {TITLES[name]}
              {name === 'recording' && recording.value ? <span class="count bad"> on</span> : <Count part={name} />}
            </a>
          ))}
        </nav>
      </header>
      <main key={replacements.value}>
        {session.value === 'open' ? (
          <>
            <Trouble />
            <Undo />
            <h1 tabIndex={-1} ref={heading}>
              {foreign(title)}
            </h1>
            {isServer ? <Server key={item} name={item} /> : <View />}
            <Dialogs />
          </>
        ) : (
          <Locked />
        )}
      </main>
      <p class="said" role="status">
        {prose(announcement.value)}
      </p>
    </>
  );
}

function Count({ part }: { readonly part: Part }) {
  if (COUNTS[part] === undefined) return null;
  const count = COUNTS[part]();
  // An empty place keeps the links where they are.
  return <span class={`count ${part === 'needs' ? 'bad' : ''}`}> {part === 'needs' ? count || undefined : count}</span>;
}

const GATEWAYS = { hub: 'Hub', http: 'Gateway at', stdio: 'Gateway of one client' };

/** The gateway that the page shows, in a few words. Its dot is red if no gateway runs, or if the page is not connected. */
function Service() {
  if (session.value !== 'open') return <span />;
  const { value: state } = hub;
  const { pid, since = '', kind = 'hub', url = '' } = description.value ?? {};
  const seconds = Math.max(0, Math.round((heardAt.value - Date.parse(since)) / 1000));
  const tone = link.value === 'lost' || state?.kind === 'none' ? 'bad' : link.value === 'live' && state ? 'good' : '';
  return (
    <span class={`service ${tone}`}>
      {state === undefined && '…'}
      {state?.kind === 'none' && 'No hub runs'}
      {pid !== undefined && foreign(`${GATEWAYS[kind] ?? 'Gateway'} ${url}`.trim())}
      {pid !== undefined && `, pid ${pid}, up ${roughly(duration(seconds))}`}
      {link.value === 'lost' && ', not connected'}
      {hello.value?.isReadOnly && ', read only'}
    </span>
  );
}

/** The largest unit of a duration, because the head is short. */
function roughly(text: string): string {
  return text.split(' ').slice(0, 2).join(' ');
}

function Configuration() {
  const file = configFile.value;
  if (session.value !== 'open' || file === undefined) return null;
  return <span class="configuration">{file === null ? 'No configuration file' : <code>{foreign(file)}</code>}</span>;
}

function Trouble() {
  const state = hub.value;
  const { configFault = null, configInForce } = report.value ?? {};
  const asOf = heardAt.value > 0 ? ` What it shows is from ${clock(heardAt.value)}.` : '';
  const cards: CardProps[] = [];
  const add = (level: CardProps['level'], title: string, detail: string, fault: string | null = null) =>
    cards.push({ level, title, detail, cause: fault?.split('\n') ?? [] });
  if (link.value === 'lost') {
    const detail = 'See whether it still runs in its terminal. This page connects again by itself.';
    add('fail', '`trunkline web` does not answer', detail + asOf);
  }
  if (state?.kind === 'none') {
    const because = state.because.replace(/^No hub runs\. ?/, '');
    add('fail', 'No hub runs', [because, state.remedy].filter(Boolean).join(' '), state.fault);
  }
  if (state?.kind === 'waiting') {
    const detail = 'It has started no server yet. Start a client, such as your editor.';
    add('note', 'The hub waits for its first client', detail);
  }
  // The part `needs` shows this fault with the others.
  if (configFault !== null && route.value.part !== 'needs') {
    const isInForce = configInForce === 'previous';
    const title = isInForce
      ? 'The configuration file is unusable, so the previous one stays in force'
      : 'The configuration cannot be used, so no server runs';
    add('fail', title, '', configFault);
  }
  return (
    <div role="status">
      {cards.map((card) => (
        <Card key={card.title} {...card} />
      ))}
    </div>
  );
}

function Locked() {
  if (session.value === 'opening') return <Waiting />;
  const hasEnded = session.value === 'ended';
  return (
    <article class="card note">
      <h1>{hasEnded ? 'The session has ended' : 'This page needs a new link'}</h1>
      <p>
        {prose(
          'The command `trunkline web` shows a new link in its terminal. It works once, within a minute. If the command does not run any more, start it again.',
        )}
      </p>
      <Command text="trunkline web" />
    </article>
  );
}

/** The key `/` goes to the filter. */
function onKey(event: KeyboardEvent): void {
  const { target, key, ctrlKey, metaKey, altKey } = event;
  const isTyping = target instanceof HTMLInputElement || target instanceof HTMLSelectElement;
  if (key !== '/' || isTyping || ctrlKey || metaKey || altKey) return;
  event.preventDefault();
  document.querySelector<HTMLInputElement>('main .filter')?.focus();
}

const stream = new Stream(receive, headers, endSession);

effect(() => {
  document.documentElement.dataset.theme = theme.value;
  localStorage.setItem(THEME, theme.value);
});
effect(() => {
  if (session.value === 'open') stream.open();
  else stream.close();
});
addEventListener('hashchange', () => {
  if (CODE.test(location.hash)) void openSession();
  hash.value = location.hash;
});
document.addEventListener('keydown', onKey);
tellOfChanges();
void openSession().then(() => {
  hash.value = location.hash;
});
render(<Page />, document.body);
