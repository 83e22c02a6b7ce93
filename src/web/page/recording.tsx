import { signal, useSignal } from '@preact/signals';
import { describeBytes } from '../../wire/json/printable.js';
import type { RecordingState } from '../server/contract.js';
import { Message } from './calls.js';
import { parseRecording, type RecordedMessage, type RecordingFile } from './parse-recording.js';
import { queried } from './route.js';
import { known } from './servers.js';
import { ask, send } from './session.js';
import { hub, recording } from './state.js';
import { clock, dateTime, matches, milliseconds, number } from './text.js';
import { Action, Change, Dialog, foreign, Search, Table, Waiting } from './widgets.js';

/** The recording that was stopped last, which can be downloaded. */
const stopped = signal<RecordingState | undefined>(undefined);

export function Recording() {
  return (
    <>
      <Recorder />
      <Reader />
    </>
  );
}

async function start(): Promise<void> {
  recording.value = await ask('POST /record', {});
  stopped.value = undefined;
}

async function stop(): Promise<void> {
  stopped.value = await ask('POST /record/stop', {});
  recording.value = null;
}

function Recorder() {
  const now = recording.value;
  if (hub.value?.kind === 'none') return <p>No hub runs, so there is nothing to record.</p>;
  if (now === undefined) return <Waiting />;
  return (
    <section>
      {now === null ? (
        <p>
          <b>Not recording.</b> A recording is a file with every message between clients, Trunkline and servers, without
          known secrets.
        </p>
      ) : (
        <p>
          Recording since {clock(now.since)}: {number(now.written)} messages, {number(now.dropped)} dropped.
        </p>
      )}
      {now?.fault && <Waiting fault={now.fault} />}
      <div class="row">
        <Change
          label={now === null ? 'Start recording' : 'Stop recording'}
          kind="primary"
          run={now === null ? start : stop}
        />
        {stopped.value !== undefined && <Download {...stopped.value} />}
      </div>
    </section>
  );
}

function Download({ file, written }: RecordingState) {
  const name = file.split(/[\\/]/).at(-1) ?? file;
  const download = async () => {
    const link = document.createElement('a');
    const answer = await send(`/recording?${new URLSearchParams({ file: name })}`);
    link.href = URL.createObjectURL(await answer.blob());
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  };
  return <Action label={`Download ${number(written)} messages`} about={name} run={download} />;
}

type NamedFile = RecordingFile & { name: string };

/** Reads a file in the browser. Nothing of it is sent. */
function Reader() {
  const file = useSignal<NamedFile | undefined>(undefined);
  const openFile = async (chosen: File | undefined) => {
    if (chosen !== undefined) file.value = { ...parseRecording(await chosen.text()), name: chosen.name };
  };
  const opened = file.value;
  return (
    <section>
      <h2>Open a recording</h2>
      <label class="file">
        Choose a file, which stays on this machine
        <input type="file" class="unseen" onChange={(event) => openFile(event.currentTarget.files?.[0])} />
      </label>{' '}
      {opened !== undefined && foreign(opened.name)}
      <div role="status">
        {opened?.header === null && (
          <p class="bad">{foreign(`${opened.name} is no recording: it does not begin with the header of one.`)}</p>
        )}
      </div>
      {opened !== undefined && opened.header !== null && <Messages key={opened.name} {...opened} />}
    </section>
  );
}

const ARROWS: Readonly<Record<string, string>> = {
  'c>g': 'client → Trunkline',
  'g>s': 'Trunkline → server',
  's>g': 'server → Trunkline',
  'g>c': 'Trunkline → client',
};

function Messages({ header, name, messages, dropped, unreadable }: NamedFile) {
  const opened = useSignal<RecordedMessage | undefined>(undefined);
  const open = (message?: RecordedMessage) => () => {
    opened.value = message;
  };
  const words = queried('words');
  const isFound = (message: RecordedMessage) =>
    matches(`${titleOf(message)} ${message.party} ${message.kind} ${message.text}`, words);
  const found = words === '' ? messages : messages.filter(isFound);
  const { value } = opened;
  return (
    <>
      <Search label="Filter the messages" />
      <p class="quiet">
        {foreign(`Trunkline ${header?.version}, ${dateTime(header?.startedAt ?? '')}. `)}
        {number(found.length)} of {number(messages.length)} messages
        {dropped > 0 && `, ${number(dropped)} were dropped while it was made`}
        {unreadable > 0 && `, ${number(unreadable)} lines cannot be read`}.
      </p>
      <Table
        caption={`Messages of ${name}`}
        rows={found}
        keyOf={({ index }) => String(index)}
        columns={[
          ['At', ({ at }) => clock(at)],
          ['Way', ({ direction }) => ARROWS[direction] ?? direction],
          ['With', ({ party }) => party],
          [
            'Message',
            (message) => (
              <button type="button" class="link" onClick={open(message)}>
                {foreign(titleOf(message))}
              </button>
            ),
          ],
          ['Kind', ({ kind }) => <span class={kind === 'error' ? 'state bad' : 'quiet'}>{kind}</span>],
          ['After', ({ ms }) => known(ms, milliseconds), ({ ms }) => ms],
          ['Size', ({ bytes }) => describeBytes(bytes), ({ bytes }) => bytes],
        ]}
      />
      {value !== undefined && (
        <Dialog title={titleOf(value)} onClose={open()}>
          <Message title={ARROWS[value.direction] ?? ''} text={value.text} bytes={value.bytes} />
        </Dialog>
      )}
    </>
  );
}

function titleOf({ method, name }: RecordedMessage): string {
  return `${method} ${name}`.trim() || 'message';
}
