import { createInterface } from 'node:readline';
import type { cancelChatTurn, ChatParts, chatWithBot, ChatTurn } from '../../../api/research.ts';
import type { Client } from '../../../client/client.ts';
import { ServiceError } from '../../../base/errors.ts';
import { printable, printableLine } from '../../../base/printable.ts';
import { promptOn } from '../../ask.ts';
import { BOT_ARGUMENT } from '../../bots.ts';
import { connect } from '../../connect.ts';
import type { Output } from '../../output.ts';
import { requireAnswer } from '../../chat-turn.ts';
import { defineVerb, type Context } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'ask about a bot, or ask one of its agents',
  description:
    'The answer comes from the language model configured on the server or, without one, from an analyst that computes figures from the records of the bot, cites the source of each, and refuses every other question. It has only your scopes: with read it reads, with write it also runs backtests and proposes versions of research bots. About a trading bot it only reads. It cannot change trading. Without a prompt, it asks for questions until you enter an empty one. Without a terminal, it reads questions from standard input, one per line, all in one session; with --json each answer is one line. Pass a question of several lines as the prompt. Tool calls are reported on stderr. Ctrl-C stops the answer; if the connection breaks, the server finishes the answer and keeps it in the session.',
  arguments: {
    bot: BOT_ARGUMENT,
    prompt: { description: 'what to ask', optional: true },
  },
  options: {
    session: { value: 'id', description: 'continue this chat session' },
    agent: { value: 'role', description: 'ask this agent of the spec instead of the bot' },
  },
  settings: ['server_url'],
  examples: [
    'bots chat sma-research "What is the Sharpe ratio?"',
    'bots chat sma-research',
    'bots chat sma-research < questions.txt',
    'bots chat sma-research --agent critic "$(cat question.txt)"',
    'bots chat sma-research "What is the maximum drawdown?" --json | jq .citations',
  ],
  async run(context, { bot, prompt }, { session, agent }) {
    const talk: Talk = { bot, session, agent };
    const server = await connect(context, context.signal);
    if (prompt === undefined && context.interactive) {
      return { data: null, show: (out) => converse(context, server, talk, out) };
    }
    if (prompt === undefined) {
      const questions = readQuestions(context);
      return {
        data: null,
        stream: askAll(context, server, talk, questions),
        async show(out) {
          for await (const _turn of askAll(context, server, talk, questions, out));
        },
      };
    }
    if (prompt.trim() === '') throw noQuestionError();
    return {
      data: null,
      stream: (async function* () {
        yield requireAnswer(await askOne(context, server, talk, prompt));
      })(),
      async show(out) {
        const turn = requireAnswer(await askOne(context, server, talk, prompt, out));
        reportSession(context, turn.session_id);
      },
    };
  },
});

function noQuestionError(): ServiceError {
  return new ServiceError('usage', 'no question given', {
    remedy: 'Give a prompt after the bot, or questions on standard input, one per line.',
  });
}

function reportSession(context: Context, session: string): void {
  context.message(`to continue: --session ${printableLine(session)}`);
}

async function* readQuestions({ io: { stdin } }: Context): AsyncGenerator<string> {
  for await (const line of createInterface({ input: stdin, crlfDelay: Infinity })) {
    const asked = line.trim();
    if (asked !== '') yield asked;
  }
}

/**
 * Asks the questions one after the other in one session. If an answer fails, the next question is
 * still asked.
 *
 * @param out receives questions and answers.
 * @throws ServiceError of the first failed answer, after the last question; `usage` if there is no
 *   question.
 */
async function* askAll(
  context: Context,
  server: Client,
  talk: Talk,
  questions: AsyncIterable<string>,
  out?: Output,
): AsyncGenerator<ChatTurn> {
  let { session } = talk;
  let failed: ChatTurn | undefined;
  let count = 0;
  for await (const asked of questions) {
    out?.line(out.style.bold(printableLine(`> ${asked}`)));
    const turn = await askOne(context, server, { ...talk, session }, asked, out);
    session = turn.session_id;
    count += 1;
    if (turn.error !== null) {
      failed ??= turn;
      context.message(printableLine(`error: ${turn.error.detail}`));
    }
    yield turn;
  }
  if (count === 0) throw noQuestionError();
  if (out && session !== undefined) reportSession(context, session);
  if (failed !== undefined) requireAnswer(failed);
}

interface Talk {
  readonly bot: string;
  readonly session: string | undefined;
  readonly agent: string | undefined;
}

async function converse(context: Context, server: Client, talk: Talk, out: Output): Promise<void> {
  let { session } = talk;
  const { input } = await import('@inquirer/prompts');
  for (let number = 1; ; number += 1) {
    const message = `${talk.bot} [${number}]:`;
    const asked = await promptOn(context.io, (terminal) => input({ message }, terminal));
    if (asked.trim() === '') break;
    const turn = await askOne(context, server, { ...talk, session }, asked, out);
    session = turn.session_id;
    if (turn.error !== null) context.message(printableLine(`error: ${turn.error.detail}`));
  }
  if (session !== undefined) reportSession(context, session);
}

/** @param out prints the answer as it arrives. @returns the turn, even if it failed. */
async function askOne(
  context: Context,
  server: Client,
  { bot: bot_ref, session, agent }: Talk,
  prompt: string,
  out?: Output,
): Promise<ChatTurn> {
  let begun: ChatParts['begun'] | undefined;
  const events = server.stream<typeof chatWithBot>('/bots/{bot_ref}/chat', {
    params: { bot_ref },
    body: {
      prompt,
      ...(session !== undefined && { session_id: session }),
      ...(agent !== undefined && { agent_role: agent }),
    },
  });
  try {
    for await (const { event, data } of events) {
      const part = JSON.parse(data) as object;
      if (event === 'begun') begun = part as ChatParts['begun'];
      if (event === 'text' && out) {
        context.io.stdout.write(printable((part as ChatParts['text']).text));
      }
      if (event === 'tool_call') {
        const { tool, args } = part as ChatParts['tool_call'];
        context.message(printableLine(`${tool} ${args}`));
      }
      if (event === 'tool_result') {
        const { tool, error } = part as ChatParts['tool_result'];
        if (error !== null) context.message(printableLine(`${tool}: ${error}`));
      }
      if (event === 'turn') {
        const turn = part as ChatTurn;
        if (out) showTurnEnd(context, out, turn);
        return turn;
      }
    }
  } catch (error) {
    if (context.signal.aborted && begun) await cancel(context, bot_ref, begun.session_id);
    throw error;
  }
  const id = begun?.session_id ?? '';
  throw new ServiceError('chat_failed', `the connection broke before the answer of ${id} ended`, {
    remedy: `Continue with --session ${id}. The server keeps the answer.`,
  });
}

/** Stops the answer on the server, so that the rest costs nothing. */
async function cancel(context: Context, bot_ref: string, session_id: string): Promise<void> {
  const server = await connect(context);
  const path = '/bots/{bot_ref}/chat/sessions/{session_id}/cancel';
  await server
    .call<typeof cancelChatTurn>('post', path, { params: { bot_ref, session_id } })
    .catch(() => {});
}

function showTurnEnd({ io, message }: Context, out: Output, turn: ChatTurn): void {
  const { answer, citations, stopped_by, is_language_model, model, usage } = turn;
  if (answer !== '' && !answer.endsWith('\n')) io.stdout.write('\n');
  for (const { figure, value, source } of citations) {
    const what = figure === undefined ? '' : `${figure} ${String(value)}: `;
    out.line(out.style.dim(printableLine(`  ${what}${source}`)));
  }
  if (stopped_by !== null) {
    message(`the answer is incomplete: the limit on ${stopped_by} was reached`);
  }
  if (is_language_model) {
    const { requests, input_tokens, output_tokens } = usage;
    message(
      printableLine(
        `${model}: ${requests} requests, ${input_tokens} input tokens, ${output_tokens} output tokens`,
      ),
    );
  }
}
