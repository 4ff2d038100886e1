mod additive_fixtures;
mod additive_laws;
mod fixtures;
mod gaps;
mod laws;
mod saboteurs;
mod score_mods;
mod state;
