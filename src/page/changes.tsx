import { effect, signal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { isRecord, parseJson } from '../json/json-value.js';
import type { Actions, ConfigDiff } from '../web/contract.js';
import { Message as MessageText } from './calls.js';
import { say } from './say.js';
import { act } from './session.js';
import { report } from './state.js';
import { Action, Block, Change, Command, Dialog, Diff, foreign, prose, useRead, Waiting } from './widgets.js';

type ConfigPath = '/enable' | '/tools';
type ConfigChange = { [P in ConfigPath]: { path: P; body: Actions[P]['body'] } }[ConfigPath];

/** Dialog in which a person reads what a change does before it is made. */
type Open =
  | { kind: 'config'; title: string; change: ConfigChange }
  | { kind: 'review'; server: string }
  | { kind: 'definition'; name: string; view: string }
  | { kind: 'login'; server: string; url: string | null; text: string };

const open = signal<Open | undefined>(undefined);

export function review(server: string): void {
  open.value = { kind: 'review', server };
}

export function showDefinition(name: string, view: string): void {
  open.value = { kind: 'definition', name, view };
}

export function changeConfig(title: string, change: ConfigChange): void {
  open.value = { kind: 'config', title, change };
}

export function enable(server: string, isEnabled: boolean): void {
  changeConfig(`${isEnabled ? 'Enable' : 'Disable'} ${server}`, { path: '/enable', body: { server, isEnabled } });
}

export async function logIn(server: string): Promise<void> {
  open.value = { kind: 'login', server, ...(await act('/login', { server })) };
}

export async function restart(server: string): Promise<void> {
  const find = () => report.value?.servers.find((each) => each.server === server);
  const before = find()?.generation ?? 0;
  await act('/restart', { server });
  say(`${server} is being restarted.`);
  const end = effect(() => {
    const now = find();
    if (now === undefined || now.generation <= before || now.state !== 'ready') return;
    say(`${server} is up again.`);
    queueMicrotask(() => end());
  });
}

export function Dialogs() {
  const close = () => {
    open.value = undefined;
  };
  switch (open.value?.kind) {
    case 'config':
      return <ConfigDialog {...open.value} onClose={close} />;
    case 'review':
      return <ReviewDialog {...open.value} onClose={close} />;
    case 'definition':
      return <DefinitionDialog {...open.value} onClose={close} />;
    case 'login':
      return <LoginDialog {...open.value} onClose={close} />;
    default:
      return null;
  }
}

function ConfigDialog({ title, change, onClose }: { title: string; change: ConfigChange; onClose: () => void }) {
  const diff = useSignal<ConfigDiff | undefined>(undefined);
  const fault = useSignal<string | undefined>(undefined);
  const ask = (hash: { hash?: string }) => act(change.path, { ...change.body, ...hash } as Actions[ConfigPath]['body']);
  const show = async () => {
    try {
      diff.value = await ask({});
    } catch (error) {
      fault.value = (error as Error).message;
    }
  };
  useEffect(() => void show(), []);
  const write = async (hash: string) => {
    try {
      say(`Written to ${(await ask({ hash })).file}.`);
      onClose();
    } catch (error) {
      // The file may have changed since it was shown. Then the change has to be read again.
      await show();
      throw error;
    }
  };
  const { value } = diff;
  return (
    <Dialog title={title} onClose={onClose}>
      {value === undefined ? <Waiting fault={fault.value} /> : <code>{foreign(value.file)}</code>}
      {value?.lines.length === 0 && <p>Nothing changes.</p>}
      {value !== undefined && value.lines.length > 0 && (
        <>
          <Diff lines={value.lines} label="Change of the configuration" />
          <Change label="Write" kind="primary" run={() => write(value.hash)} />
        </>
      )}
    </Dialog>
  );
}

function ReviewDialog({ server, onClose }: { server: string; onClose: () => void }) {
  const { answer, fault, load } = useRead('/review', { server }, '');
  const isEmpty = answer?.tools.length === 0;
  const approve = async (tools: readonly { tool: string; hash: string }[]) => {
    try {
      for (const { tool, hash } of tools) await act('/approve', { server, tool, hash });
      say(`Approved: ${tools.map(({ tool }) => tool).join(', ')}.`);
      if (tools.length === answer?.tools.length) onClose();
    } finally {
      // A tool that has changed since it was shown is refused, and has to be read again.
      await load();
    }
  };
  return (
    <Dialog
      title={`Tools of ${server} that wait for approval`}
      close={isEmpty ? undefined : 'Keep hidden'}
      onClose={onClose}
    >
      {!isEmpty && <p class="quiet">Clients get a tool when it is approved. Until then it stays hidden.</p>}
      {answer === undefined && <Waiting fault={fault} />}
      {isEmpty && <p>No tool waits for approval.</p>}
      {answer?.tools.map((tool) => (
        <section key={`${tool.tool} ${tool.hash}`}>
          <h3>
            {foreign(tool.tool)}{' '}
            <span class="quiet">{tool.change === 'new' ? 'new' : 'changed since its approval'}</span>
          </h3>
          <Diff lines={tool.lines} label={`Definition of ${foreign(tool.tool)}`} />
          <Change label="Approve" about={tool.tool} kind="primary" run={() => approve([tool])} />
        </section>
      ))}
      {answer !== undefined && answer.tools.length > 1 && (
        <Change label={`Approve all ${answer.tools.length}`} run={() => approve(answer.tools)} />
      )}
    </Dialog>
  );
}

function DefinitionDialog({ name, view, onClose }: { name: string; view: string; onClose: () => void }) {
  const { answer, fault } = useRead('/definition', { name, view }, '');
  const definition = answer && parseJson(answer.text);
  return (
    <Dialog title={name} onClose={onClose}>
      {answer === undefined && <Waiting fault={fault} />}
      {isRecord(definition) && <Block label="Description">{String(definition.description ?? 'No description.')}</Block>}
      {answer && (
        <MessageText
          title="As clients get it"
          text={answer.text}
          bytes={new TextEncoder().encode(answer.text).length}
        />
      )}
    </Dialog>
  );
}

function LoginDialog(props: { server: string; url: string | null; text: string; onClose: () => void }) {
  const { server, url, text, onClose } = props;
  const address = url !== null && URL.canParse(url) ? new URL(url) : undefined;
  const isPage = address?.protocol === 'https:' || address?.protocol === 'http:';
  return (
    <Dialog title={`Log in at ${server}`} onClose={onClose}>
      <p>{prose(text)}</p>
      {url !== null && <Command text={url} />}
      {isPage && (
        <Action
          label={`Open the page of ${address.host}`}
          kind="primary"
          run={() => window.open(address, '_blank', 'noopener,noreferrer')}
        />
      )}
    </Dialog>
  );
}
