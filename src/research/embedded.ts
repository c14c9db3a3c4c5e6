import { answerQuestion } from './analyst/analyst.ts';
import { NO_USAGE, type Answerer } from './answering.ts';

/** Answers with the built-in analyst, without a language model. */
export const EMBEDDED: Answerer = {
  provider: 'analyst',
  model: null,
  is_language_model: false,
  async answer({ ask, bot, role, prompt, history, signal, say }) {
    const earlier = history.map((turn) => turn.prompt);
    const about = { earlier, role };
    const { answer, citations } = await answerQuestion(ask, bot.bot_id, prompt, signal, about);
    say(answer);
    return { citations, usage: NO_USAGE, stopped_by: null };
  },
};
