import { duration } from '../../status/status-text.js';
import { plural } from '../../wire/json/printable.js';
import { Help } from './help.js';
import { ServerLink } from './servers.js';
import { description, hub, report } from './state.js';
import { dateTime } from './text.js';
import { prose, Table, Waiting } from './widgets.js';

export function Clients() {
  const clients = description.value?.clients;
  const servers = report.value?.servers ?? [];
  if (hub.value === undefined) return <Waiting />;
  if (clients === undefined) return <p>No hub runs, so no client is connected.</p>;
  return (
    <>
      <Table
        caption={
          clients.length === 0
            ? 'No client is connected.'
            : `${plural(clients.length, 'client')}, each with an attach process`
        }
        rows={clients}
        keyOf={({ pid, since }) => `${pid} ${since}`}
        columns={[
          ['Client', ({ name }) => name],
          ['Version', ({ version }) => version],
          ['Revision', ({ revision }) => revision],
          ['Process', ({ pid }) => `pid ${pid}`],
          ['View', ({ view }) => view ?? 'none'],
          ['In flight', ({ inFlight }) => inFlight, ({ inFlight }) => inFlight],
          ['Since', ({ since }) => dateTime(since)],
          ['For', ({ uptimeSeconds }) => duration(uptimeSeconds), ({ uptimeSeconds }) => uptimeSeconds],
          ['Trunkline', ({ trunkline }) => trunkline],
        ]}
      />
      {servers.length > 0 && (
        <Table
          caption="Servers that clients share, and why"
          rows={servers}
          keyOf={({ server }) => server}
          columns={[
            ['Server', ({ server }) => <ServerLink server={server} />],
            ['Sharing', ({ sharing }) => sharing?.mode],
            ['Because', ({ sharing }) => sharing && prose(sharing.because)],
            ['Instances', ({ instances }) => instances.length, ({ instances }) => instances.length],
          ]}
        />
      )}
      <Help words={['isolated', 'profile', 'view', 'revision']} />
      {description.value?.advice?.map((sentence) => (
        <p key={sentence}>{prose(sentence)}</p>
      ))}
    </>
  );
}
