// What an application sees through Google's SDK: genai.mjs ROOT UPSTREAM, the upstream's dialect. Prints ok, or what is wrong.
import assert from 'node:assert/strict';
import { GoogleGenAI, FunctionCallingConfigMode } from '@google/genai';

const [, , baseUrl, upstream] = process.argv;
const ai = new GoogleGenAI({ apiKey: 'EMPTY', httpOptions: { baseUrl } });
const model = 'rolltap-demo';
const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

const step = async (name, run) => {
  try {
    await run();
  } catch (e) {
    console.log(`${name}, ${upstream}: ${e.stack}`);
    process.exitCode = 1;
  }
};

// Of a stream the texts, the thoughts, the calls, the last finish reason and usage.
const collected = async (stream) => {
  const all = { text: '', thoughts: '', signatures: 0, calls: [], chunks: 0 };
  for await (const chunk of stream) {
    all.chunks++;
    for (const part of chunk.candidates?.[0]?.content?.parts ?? []) {
      if (part.thought) all.thoughts += part.text;
      else all.text += part.text ?? '';
      if (part.thoughtSignature) {
        all.signatures++;
        assert.match(part.thoughtSignature, /^[A-Za-z0-9+/]+=*$/); // bytes
      }
    }
    all.calls.push(...(chunk.functionCalls ?? []));
    assert.equal(all.finish, undefined, 'a chunk behind the finish reason');
    all.finish = chunk.candidates?.[0]?.finishReason;
    all.usage = chunk.usageMetadata ?? all.usage;
  }
  return all;
};

await step('a whole answer', async () => {
  const whole = await ai.models.generateContent({ model, contents: 'What is the capital of France?' });
  assert.match(whole.text, /Paris/);
  assert.equal(whole.candidates[0].finishReason, 'STOP');
  assert.equal(whole.modelVersion, model);
  assert.ok(whole.responseId);
  const { promptTokenCount, candidatesTokenCount, totalTokenCount } = whole.usageMetadata;
  assert.ok(promptTokenCount > 0 && candidatesTokenCount > 0 && totalTokenCount === promptTokenCount + candidatesTokenCount);
});

await step('a stream', async () => {
  const all = await collected(await ai.models.generateContentStream({ model, contents: 'echo: one two three four five' }));
  assert.equal(all.text, 'one two three four five');
  assert.ok(all.chunks > 3, 'it comes in pieces');
  assert.equal(all.finish, 'STOP');
  assert.ok(all.usage.candidatesTokenCount > 0);
});

await step('a system instruction and a limit', async () => {
  const config = { systemInstruction: 'Be brief.', maxOutputTokens: 3, temperature: 0.5, topP: 0.9 };
  const cut = await ai.models.generateContent({ model, contents: '20 words', config });
  assert.equal(cut.candidates[0].finishReason, 'MAX_TOKENS');
  const bare = await ai.models.generateContent({ model, contents: '20 words', config: { maxOutputTokens: 3 } });
  assert.ok(cut.usageMetadata.promptTokenCount > bare.usageMetadata.promptTokenCount, 'the instruction is in the prompt');
});

await step('thinking, shown', async () => {
  const config = { thinkingConfig: { includeThoughts: true } };
  const all = await collected(await ai.models.generateContentStream({ model, contents: 'Think: why is the sky blue?', config }));
  assert.match(all.text, /blue/);
  assert.ok(all.thoughts.length > 0);
  assert.equal(all.signatures, 1);
  assert.equal(all.finish, 'STOP');
  const whole = await ai.models.generateContent({ model, contents: 'Think: why is the sky blue?', config });
  assert.equal(whole.text, all.text);
  assert.equal(whole.candidates[0].content.parts[0].text, all.thoughts);
});

await step('thinking, hidden', async () => {
  const whole = await ai.models.generateContent({ model, contents: 'Think: why is the sky blue?' });
  assert.ok(whole.candidates[0].content.parts.every((part) => !part.thought));
  assert.ok(whole.candidates[0].content.parts.some((part) => part.thoughtSignature));
});

// The demo model refuses images by name: that it does says that one has come.
await step('an image', async () => {
  const contents = [{ role: 'user', parts: [{ inlineData: { mimeType: 'image/png', data: pixel } }, { text: 'echo: seen' }] }];
  await assert.rejects(ai.models.generateContent({ model, contents }), (e) => e.status === 400 && /multimodal/.test(e.message));
});

await step('structured output', async () => {
  const responseSchema = { type: 'OBJECT', properties: { city: { type: 'STRING' }, degrees: { type: 'INTEGER' } }, required: ['city', 'degrees'] };
  const whole = await ai.models.generateContent({ model, contents: 'The weather', config: { responseMimeType: 'application/json', responseSchema } });
  const value = JSON.parse(whole.text);
  assert.equal(typeof value.city, 'string');
  assert.ok(Number.isInteger(value.degrees));
});

const parameters = { type: 'OBJECT', properties: { city: { type: 'STRING' } }, required: ['city'] };
const tools = [{ functionDeclarations: [{ name: 'get_weather', description: 'the weather', parameters }] }];
const answer = (calls) => calls.map((c) => ({ functionResponse: { id: c.id, name: c.name, response: { output: '18 degrees' } } }));

await step('a conversation with a tool', async () => {
  const chat = ai.chats.create({ model, config: { tools } });
  const { calls, finish } = await collected(await chat.sendMessageStream({ message: 'What is the weather in Paris? Use the tool.' }));
  assert.equal(calls.length, 1);
  assert.equal(calls[0].name, 'get_weather');
  assert.deepEqual(calls[0].args, { city: 'Paris' });
  assert.equal(finish, 'STOP');
  assert.match((await chat.sendMessage({ message: answer(calls) })).text, /18 degrees/);
  assert.equal(chat.getHistory().length, chat.getHistory(true).length); // the SDK finds nothing invalid
});

await step('calls side by side, behind thoughts', async () => {
  const chat = ai.chats.create({ model, config: { tools } });
  const { calls, signatures } = await collected(await chat.sendMessageStream({ message: 'Think: use the weather tool twice in Paris' }));
  assert.equal(calls.length, 2);
  assert.notEqual(calls[0].id, calls[1].id);
  assert.equal(signatures, 1);
  const all = await collected(await chat.sendMessageStream({ message: answer(calls) }));
  assert.match(all.text, /18 degrees/);
  assert.equal(chat.getHistory().length, chat.getHistory(true).length);
});

await step('a forced call', async () => {
  const config = { tools, toolConfig: { functionCallingConfig: { mode: FunctionCallingConfigMode.ANY, allowedFunctionNames: ['get_weather'] } } };
  const whole = await ai.models.generateContent({ model, contents: 'hello', config });
  assert.equal(whole.functionCalls.length, 1);
  const none = { tools, toolConfig: { functionCallingConfig: { mode: FunctionCallingConfigMode.NONE } } };
  assert.equal((await ai.models.generateContent({ model, contents: 'Use the tool', config: none })).functionCalls, undefined);
});

await step('failures', async () => {
  const failed = (contents, config) => ai.models.generateContent({ model, contents, config }).then(() => assert.fail('no failure'), (e) => e);
  for (const status of [400, 401, 403, 404, 429, 500, 503]) {
    const e = await failed(`[demo-fault: status=${status}]`);
    assert.equal(e.status, status, e.message);
    assert.equal(e.constructor.name, 'ApiError');
    assert.equal(JSON.parse(e.message).error.code, status);
    const streamed = await ai.models.generateContentStream({ model, contents: `[demo-fault: status=${status}]` }).catch((e) => e);
    assert.equal(streamed.status, status, streamed.message);
  }
  const e = await failed('x', { candidateCount: 2 });
  assert.equal(e.status, 400);
  assert.match(e.message, /candidateCount/);
  const inside = (fault) => async () => collected(await ai.models.generateContentStream({ model, contents: `echo: a b c d e f [demo-fault: ${fault}=4]` }));
  await assert.rejects(inside('error-frame'), (e) => e.status === 500 && /EngineCore/.test(e.message));
  await assert.rejects(inside('cut'), (e) => e.status >= 500);
});

await step('a count', async () => {
  assert.ok((await ai.models.countTokens({ model, contents: 'hi' })).totalTokens > 0);
});

if (!process.exitCode) console.log('ok');
