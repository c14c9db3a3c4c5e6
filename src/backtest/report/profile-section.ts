import { formatNumber, NO_VALUE } from '../../base/format.ts';
import { html, type Html, nothing } from '../../base/html.ts';
import { describeProfileFigure } from '../profile-figures.ts';
import type { UnhashedSummary } from '../summary.ts';

/** The figures of the run as another library computes them. */
export function profileSection({ profile }: UnhashedSummary): Html {
  if (profile === undefined) return nothing;
  return html`<section aria-labelledby="profile">
    <h2 id="profile">Figures by the conventions of <bdi>${profile.name}</bdi></h2>
    <p class="note">
      The figures of this run as that library computes them, including its known errors, so that you
      can compare them with its output. Shares are numbers: 0.12 is 12%.
    </p>
    <table class="plain stack">
      <tbody>
        ${Object.entries(profile.statistics).map(([name, figure]) => {
          const [label, explanation] = describeProfileFigure(profile.name, name);
          return html`<tr>
            <th scope="row"><bdi title="${name}">${label}</bdi></th>
            <td class="number">${figure === null ? NO_VALUE : formatNumber(figure)}</td>
            <td class="how">${explanation}</td>
          </tr> `;
        })}
      </tbody>
    </table>
  </section>`;
}
