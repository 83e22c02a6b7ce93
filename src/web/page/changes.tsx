import { effect, signal } from '@preact/signals';
import type { ComponentChild } from 'preact';
import { isRecord, parseJson } from '../../wire/json/json-value.js';
import { utf8Length } from '../../wire/json/printable.js';
import type { ConfigChange, Requests } from '../server/contract.js';
import { Message } from './calls.js';
import { announce } from './say.js';
import { ask } from './session.js';
import { replacements } from './state.js';
import {
  Action,
  Block,
  Change,
  Command,
  Dialog,
  Diff,
  foreign,
  prose,
  useAnswer,
  useRead,
  Waiting,
} from './widgets.js';

/** The open dialog, such as one that shows a change before it is made; null if none is open. */
const dialog = signal<ComponentChild>(null);

export function Dialogs() {
  return <>{dialog.value}</>;
}

function close(): void {
  dialog.value = null;
}

/** The last change of the configuration, until it is undone or put away. */
const written = signal<{ readonly title: string; readonly file: string; readonly undo: string } | undefined>(undefined);

// Closes the dialog, and forgets the last change, when the page shows another configuration.
effect(() => {
  replacements.value;
  close();
  written.value = undefined;
});

export function Undo() {
  const last = written.value;
  if (last === undefined) return null;
  const undo = async () => {
    const { file } = await ask('POST /undo', { undo: last.undo });
    putAway();
    announce(`Undone in ${file}: ${last.title}.`);
  };
  const putAway = () => {
    written.value = undefined;
  };
  return (
    <section class="card note row" aria-label="Last change of the configuration">
      <span>
        {foreign(last.title)}: written to <code>{foreign(last.file)}</code>.
      </span>
      <Change label="Undo" about={last.title} run={undo} />
      <button type="button" onClick={putAway}>
        Close
      </button>
    </section>
  );
}

export function review(server: string): void {
  dialog.value = <ReviewDialog server={server} />;
}

export function showDefinition(name: string, view: string): void {
  dialog.value = <DefinitionDialog name={name} view={view} />;
}

export function changeConfig(title: string, changes: readonly ConfigChange[], onWritten?: () => void): void {
  dialog.value = <ConfigDialog title={title} changes={changes} onWritten={onWritten} />;
}

export function enable(server: string, isEnabled: boolean): void {
  changeConfig(`${isEnabled ? 'Enable' : 'Disable'} ${server}`, [{ server, isDisabled: !isEnabled }]);
}

export async function logIn(server: string): Promise<void> {
  const login = await ask('POST /login', { server });
  dialog.value = <LoginDialog server={server} {...login} />;
}

export async function answer(id: string, allow: boolean): Promise<void> {
  await ask('POST /answer', { id, allow });
  announce(
    allow ? 'The call goes on. If it has ended meanwhile, it passes when it comes again.' : 'The call is refused.',
  );
}

export async function restart(server: string): Promise<void> {
  await ask('POST /restart', { server });
  announce(`${server} is being restarted.`);
}

function ConfigDialog(props: { title: string; changes: readonly ConfigChange[]; onWritten: (() => void) | undefined }) {
  const { title, changes, onWritten } = props;
  const { answer, fault, load } = useAnswer(() => ask('POST /configure', { changes }), title);
  const write = async (hash: string) => {
    try {
      const { file, undo } = await ask('POST /configure', { changes, hash });
      close();
      if (undo !== null) written.value = { title, file, undo };
      announce(`Written to ${file}.`);
      onWritten?.();
    } catch (error) {
      // The file may have changed since it was shown. Then the change has to be read again.
      await load();
      throw error;
    }
  };
  return (
    <Dialog title={title} onClose={close}>
      {answer === undefined ? <Waiting fault={fault} /> : <code>{foreign(answer.file)}</code>}
      {answer?.lines.length === 0 && <p>Nothing changes.</p>}
      {answer !== undefined && answer.lines.length > 0 && (
        <>
          <Diff lines={answer.lines} label="Change of the configuration" />
          <Change label="Write" kind="primary" run={() => write(answer.hash)} />
        </>
      )}
    </Dialog>
  );
}

function ReviewDialog({ server }: { server: string }) {
  const { answer, fault, load } = useRead('GET /review', { server });
  const isEmpty = answer?.length === 0;
  const approve = async (tools: readonly { tool: string; hash: string }[]) => {
    try {
      for (const { tool, hash } of tools) await ask('POST /approve', { server, tool, hash });
      announce(`Approved: ${tools.map(({ tool }) => tool).join(', ')}.`);
      if (tools.length === answer?.length) close();
    } finally {
      // A tool that has changed since it was shown is refused, and has to be read again.
      await load();
    }
  };
  return (
    <Dialog
      title={`Tools of ${server} that wait for approval`}
      close={isEmpty ? undefined : 'Keep hidden'}
      onClose={close}
    >
      {!isEmpty && <p class="quiet">Clients get a tool when it is approved. Until then it stays hidden.</p>}
      {answer === undefined && <Waiting fault={fault} />}
      {isEmpty && <p>No tool waits for approval.</p>}
      {answer?.map((tool) => (
        <section key={`${tool.tool} ${tool.hash}`}>
          <h3>
            {foreign(tool.tool)}{' '}
            <span class="quiet">{tool.change === 'new' ? 'new' : 'changed since its approval'}</span>
          </h3>
          <Diff lines={tool.lines} label={`Definition of ${foreign(tool.tool)}`} />
          <Change label="Approve" about={tool.tool} kind="primary" run={() => approve([tool])} />
        </section>
      ))}
      {answer !== undefined && answer.length > 1 && (
        <Change label={`Approve all ${answer.length}`} run={() => approve(answer)} />
      )}
    </Dialog>
  );
}

function DefinitionDialog({ name, view }: { name: string; view: string }) {
  const { answer: text, fault } = useRead('GET /definition', { name, view });
  const definition = parseJson(text ?? '');
  return (
    <Dialog title={name} onClose={close}>
      {text === undefined && <Waiting fault={fault} />}
      {isRecord(definition) && <Block label="Description">{String(definition.description ?? 'No description.')}</Block>}
      {text !== undefined && <Message title="As clients get it" text={text} bytes={utf8Length(text)} />}
    </Dialog>
  );
}

function LoginDialog({ server, url, text }: Requests['POST /login']['answer'] & { server: string }) {
  const address = url !== null && URL.canParse(url) ? new URL(url) : undefined;
  const isPage = address?.protocol === 'https:' || address?.protocol === 'http:';
  return (
    <Dialog title={`Log in at ${server}`} onClose={close}>
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
