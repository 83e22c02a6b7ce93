import * as z from 'zod/mini';
import { described, expects, list, text } from './fields.js';
import { TOOL_NAME } from './server-key.js';

const newName = z.string(expects('the new name of the tool')).check(
  z.regex(TOOL_NAME, {
    error: 'this name cannot be used; expected up to 64 letters, digits, `_` and `-`',
  }),
);

const description = z.union(
  [
    text('The new description.'),
    z.strictObject(
      { append: text("A text that follows the server's description, after an empty line.") },
      expects('a map with `append`'),
    ),
  ],
  expects('a text, or a map with `append`'),
);

const values = z.record(z.string(), z.unknown(), expects('a map of parameters with their values'));

const params = z.exactPartial(
  z.strictObject(
    {
      hide: list(text('The name of a parameter.'), 'Parameters that clients do not see.'),
      set: described(values, 'Values of parameters, which replace what a client sends. Texts may contain variables.'),
      default: described(values, 'Values of parameters that a client leaves out. Texts may contain variables.'),
      describe: described(
        z.record(z.string(), text('The new description.'), expects('a map of parameters with their descriptions')),
        'Descriptions of parameters, which replace those of the server.',
      ),
    },
    expects('a map with `hide`, `set`, `default` or `describe`'),
  ),
);

const byTool = <Value extends z.ZodMiniType>(value: Value, description: string) =>
  described(z.record(z.string(), value, expects('a map of tools, by their original names')), description);

/** The key `tools` of a server. All names of tools in it are the names that the server uses. */
export const toolSettings = z.exactPartial(
  z.strictObject(
    {
      allow: list(
        text('The name of a tool. `*` matches any characters.'),
        'The only tools to show. Without it, all tools are shown.',
      ),
      deny: list(text('The name of a tool. `*` matches any characters.'), 'Tools to hide, even if `allow` names them.'),
      rename: byTool(newName, 'New names of tools, without the prefix.'),
      describe: byTool(description, 'Descriptions of tools, which replace those of the server or follow them.'),
      params: byTool(params, 'How parameters of tools are shown, and their values.'),
    },
    expects('a map with `allow`, `deny`, `rename`, `describe` or `params`'),
  ),
);
