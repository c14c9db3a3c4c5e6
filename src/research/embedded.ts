import { answerQuestion } from './analyst/analyst.ts';
import { NO_USAGE, type Answerer } from './answering.ts';

/** The analyst that needs no provider. */
export const EMBEDDED: Answerer = {
  provider: 'analyst',
  model: null,
  is_language_model: false,
  async answer({ ask, bot, prompt, signal, say }) {
    const { answer, citations } = await answerQuestion(ask, bot.bot_id, prompt, signal);
    say(answer);
    return { citations, usage: NO_USAGE, stopped_by: null };
  },
};
