import { ServiceError } from '../errors.ts';
import { answerQuestion } from './analyst/analyst.ts';
import { NO_USAGE, type Answerer } from './answering.ts';

/** The analyst that needs no provider; what the API refuses it, such as a result that is not there yet, it says. */
export const EMBEDDED: Answerer = {
  provider: 'analyst',
  model: null,
  is_language_model: false,
  async answer({ ask, bot, prompt, signal, say }) {
    try {
      const { answer, citations } = await answerQuestion(ask, bot.bot_id, prompt, signal);
      say(answer);
      return { citations, usage: NO_USAGE, stopped_by: null };
    } catch (error) {
      if (signal.aborted || !(error instanceof ServiceError)) throw error;
      say([`I cannot tell: ${error.message}.`, error.remedy ?? ''].join(' ').trim());
      return { citations: [], usage: NO_USAGE, stopped_by: null };
    }
  },
};
