import { logIn } from './changes.js';
import { announce } from './say.js';
import { known } from './servers.js';
import { ask } from './session.js';
import { hub, revision } from './state.js';
import { dateTime } from './text.js';
import { Change, foreign, prose, Table, useRead, Waiting } from './widgets.js';

export function Logins() {
  const { answer, fault, load } = useRead('GET /logins', {}, revision.value, hub.value !== undefined);
  if (answer === undefined) return <Waiting fault={fault} />;
  if (answer.length === 0) return <p>No server has a login. Only servers behind a URL can need one.</p>;
  const logOut = async (server: string) => {
    announce((await ask('POST /logout', { server })).text);
    await load();
  };
  return (
    <Table
      caption="Logins at servers behind a URL"
      rows={answer}
      keyOf={({ server }) => server}
      columns={[
        ['Server', ({ server }) => server],
        [
          'State',
          ({ state, note }) => (
            <>
              {foreign(state)} <span class="quiet">{prose(note)}</span>
            </>
          ),
        ],
        ['Issuer', ({ issuer }) => issuer],
        ['Scopes', ({ scopes }) => scopes.join(' ') || null],
        ['Expires', ({ expiresAt }) => known(expiresAt, dateTime)],
        [
          'Action',
          ({ server }) => (
            <span class="row">
              <Change label="Log in" about={server} run={() => logIn(server)} />
              <Change label="Log out" about={server} run={() => logOut(server)} />
            </span>
          ),
        ],
      ]}
    />
  );
}
