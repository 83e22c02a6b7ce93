import { z } from 'zod';
import { fileSchema } from './schema.js';

/** The text of `config/trunkline.schema.json`, by which editors complete and check a configuration as it is typed. */
export function jsonSchemaText(): string {
  const schema = z.toJSONSchema(fileSchema, {
    target: 'draft-7',
    io: 'input',
    // zod leaves out the default of what it converts, as it would be the converted one; ours is written as in the file.
    override: ({ zodSchema, jsonSchema }) => {
      const standard = z.globalRegistry.get(zodSchema)?.default;
      if (standard !== undefined) jsonSchema.default = standard;
    },
  });
  return `${JSON.stringify(schema, null, 2)}\n`;
}
