// The two dialogs: for the token, and to confirm what is done to the store.

import { $ } from './dom.js';

export function askForToken(refused) {
  const dialog = $('token-dialog');
  $('token-problem').textContent = refused ? 'The server refused this token.' : '';
  $('token').value = '';
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.onclose = () => dialog.showModal();  // there is nothing without a token
    dialog.querySelector('form').onsubmit = (event) => {
      event.preventDefault();
      dialog.onclose = null;
      dialog.close();
      resolve($('token').value.trim());
    };
  });
}

// True when the person confirms.
export function confirm(heading, text, yes) {
  const dialog = $('confirm-dialog');
  $('confirm-heading').textContent = heading;
  $('confirm-text').textContent = text;
  $('confirm-yes').textContent = yes;
  dialog.returnValue = '';
  dialog.showModal();
  return new Promise((resolve) => {
    $('confirm-no').onclick = () => dialog.close('');
    $('confirm-yes').onclick = () => dialog.close('yes');
    dialog.onclose = () => resolve(dialog.returnValue === 'yes');
  });
}
