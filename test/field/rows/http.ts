// Servers behind a URL.
import type { Row } from '../row.js';

export const HTTP: readonly Row[] = [
  { quirk: 'A sound server behind a URL', right: 'Its tools are listed and answer.', http: {} },
  { quirk: 'A sound server behind a URL', right: 'Its tools are listed and answer.', http: {}, sdk: 2 },
  {
    quirk: 'Each answer comes as an event stream',
    right: 'It is read like one in JSON.',
    http: {
      take: ({ message }, response, server) => {
        const answer = server.answerTo(message);
        if (answer === undefined) return false;
        response.writeHead(200, { 'content-type': 'text/event-stream' }).end(`data: ${JSON.stringify(answer)}\n\n`);
        return true;
      },
    },
  },
];
