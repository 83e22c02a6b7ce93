#!/usr/bin/env node
// An agent that runs Trunkline in its own process, and any model with the chat API of OpenAI:
//
//   MODEL_URL=http://localhost:11434/v1 MODEL=qwen3 node agent.mjs FILE 'What is 20 plus 22?'
//
// FILE is the configuration. The model may call tools until it answers, 20 times at most.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { openTrunkline } from 'trunkline';

const { MODEL_URL, MODEL, MODEL_KEY = 'none' } = process.env;
const [file, question] = process.argv.slice(2);

const trunkline = await openTrunkline(file);
const client = new Client({ name: 'agent', version: '1.0.0' });
try {
  await client.connect(trunkline.transport());
  const messages = [{ role: 'user', content: question }];
  for (let turn = 0; turn < 20; turn += 1) {
    // The list may change, because servers may start late, and end.
    const { tools } = await client.listTools();
    const message = await ask(messages, tools);
    messages.push(message);
    const { content, tool_calls: calls = [] } = message;
    if (calls.length === 0) {
      console.log(content);
      break;
    }
    messages.push(...(await Promise.all(calls.map(answer))));
  }
} finally {
  await trunkline.close();
}

/** Sends the conversation to the model, and returns its message. */
async function ask(messages, tools) {
  const functions = tools.map(({ name, description, inputSchema: parameters }) => ({ name, description, parameters }));
  const response = await fetch(`${MODEL_URL}/chat/completions`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${MODEL_KEY}` },
    body: JSON.stringify({
      model: MODEL,
      messages,
      tools: functions.map((each) => ({ type: 'function', function: each })),
    }),
  });
  if (!response.ok) throw new Error(`The model answers ${response.status}: ${await response.text()}`);
  const { choices } = await response.json();
  return choices[0].message;
}

/** Calls a tool. A failed call is an answer, too, because the model can try something else. */
async function answer({ id, function: { name, arguments: json } }) {
  const text = await client.callTool({ name, arguments: JSON.parse(json || '{}') }).then(
    ({ content }) => content.map((block) => block.text ?? `(${block.type})`).join('\n'),
    (error) => `It failed: ${error.message}`,
  );
  return { role: 'tool', tool_call_id: id, content: text };
}
