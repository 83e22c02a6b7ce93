import * as z from 'zod/mini';
import { described, expects, list, text } from './fields.js';
import { VIEW_NAME } from './server-key.js';

const viewName = z.string(expects('the name of a view')).check(
  z.regex(VIEW_NAME, {
    error: 'this is not a valid name of a view; expected up to 64 letters, digits, `_` and `-`',
  }),
);

const view = z.exactPartial(
  z.strictObject(
    {
      servers: list(text('The key of a server.'), 'The servers of the view. Without it, all servers.'),
      tools: described(
        z.exactPartial(
          z.strictObject(
            {
              allow: list(
                text('The name of a tool, as KEY__TOOL. `*` matches any characters.'),
                'The only tools of the view. Without it, all tools of its servers.',
              ),
              deny: list(
                text('The name of a tool, as KEY__TOOL. `*` matches any characters.'),
                'Tools that the view hides, even if `allow` names them.',
              ),
            },
            expects('a map with `allow` or `deny`'),
          ),
        ),
        'Which tools of its servers the view shows.',
      ),
    },
    expects('a map with `servers` or `tools`'),
  ),
);

export const views = described(
  z.record(viewName, view, expects('a map of views')),
  'Views by name: each shows some of the servers and tools. A client gets one with `--view NAME`, at `/mcp/v/NAME`, or by `clients`.',
);

export const clients = described(
  z.record(z.string(), text('The name of a view.'), expects('a map of names of clients, each with the name of a view')),
  'The view of a client that asks for none, by the name that the client tells. `*` matches any characters; the first match counts.',
);
