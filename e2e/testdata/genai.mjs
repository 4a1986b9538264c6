// What an application sees through Google's SDK; prints ok, or what is wrong.
import assert from 'node:assert/strict';
import { GoogleGenAI } from '@google/genai';

const ai = new GoogleGenAI({ apiKey: 'EMPTY', httpOptions: { baseUrl: process.argv[2] } });
const model = 'rolltap-demo';

const whole = await ai.models.generateContent({ model, contents: 'What is the capital of France?' });
assert.match(whole.text, /Paris/);
assert.equal(whole.candidates[0].finishReason, 'STOP');
assert.ok(whole.usageMetadata.totalTokenCount > 0);

let text = '', thoughts = '', finish;
const config = { thinkingConfig: { includeThoughts: true } };
for await (const chunk of await ai.models.generateContentStream({ model, contents: 'Think: why is the sky blue?', config })) {
  for (const part of chunk.candidates?.[0]?.content?.parts ?? []) part.thought ? (thoughts += part.text) : (text += part.text ?? '');
  finish = chunk.candidates?.[0]?.finishReason ?? finish;
}
assert.match(text, /blue/);
assert.ok(thoughts.length > 0);
assert.equal(finish, 'STOP');

const parameters = { type: 'OBJECT', properties: { city: { type: 'STRING' } }, required: ['city'] };
const tools = [{ functionDeclarations: [{ name: 'get_weather', description: 'the weather', parameters }] }];
const chat = ai.chats.create({ model, config: { tools } });
const calls = [];
for await (const chunk of await chat.sendMessageStream({ message: 'What is the weather in Paris? Use the tool.' })) calls.push(...(chunk.functionCalls ?? []));
assert.equal(calls.length, 1);
assert.deepEqual(calls[0].args, { city: 'Paris' });
const after = await chat.sendMessage({
  message: calls.map((c) => ({ functionResponse: { id: c.id, name: c.name, response: { output: '18 degrees' } } })),
});
assert.match(after.text, /18 degrees/);
assert.equal(chat.getHistory().length, chat.getHistory(true).length); // the SDK finds nothing invalid

assert.ok((await ai.models.countTokens({ model, contents: 'hi' })).totalTokens > 0);
await assert.rejects(ai.models.generateContent({ model, contents: 'x', config: { candidateCount: 2 } }), (e) => e.status === 400 && /candidateCount/.test(e.message));
console.log('ok');
