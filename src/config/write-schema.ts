// Writes the generated schema to `config/trunkline.schema.json`. Run after a build: `node dist/write-schema.js`.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { jsonSchemaText } from './json-schema.js';

writeFileSync(join(import.meta.dirname, '../config/trunkline.schema.json'), jsonSchemaText());
