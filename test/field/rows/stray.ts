// Messages that answer nothing.
import type { Row } from '../row.js';

export const STRAY: readonly Row[] = [
  {
    quirk: 'A notification that nobody knows before each answer',
    right: 'It is passed on or ignored.',
    server: {
      on: {
        'tools/call': (request, server) => {
          server.say({ jsonrpc: '2.0', method: 'notifications/vendor', params: {} });
          server.soundly(request);
        },
      },
    },
  },
  {
    quirk: 'A client whose ids are texts',
    right: 'The answer has the id of the request.',
    client: async (wire) => {
      await wire.hello();
      wire.say({ jsonrpc: '2.0', id: 'a', method: 'tools/list' });
      return await wire.answer('a');
    },
    direct: 'tools: echo',
  },
];
