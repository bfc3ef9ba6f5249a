package rows

import "strings"

// columnWords are words of which the names of columns are made. Words that are also
// names of people are not among them.
var columnWords = func() map[string]bool {
	words := map[string]bool{}
	for _, word := range strings.Fields(`
		about account active addr address addresses adresse age agent amount anrede apellido apellidos area asn base
		birth birthdate birthday bounced browser business campaign category cell channel cidr city ciudad client
		clients code col column comment comments companies company confidence consent contact contacts content cookie
		correo count country county courriel created crm currency custom customer customers data date dates datum
		department description device digest direct dob domain domains e email emails employee employees employer
		empresa end entreprise export external extra facebook family fax fecha firm file firma first firstname forename
		founded from full function geburtsdatum gender given group guid handle has hash hashed hashes hausnummer
		headcount headline hem hems home host hostname house hubspot id ids idx import index industry instagram
		internal ip ips ipv is isp job joined keys keyword keywords kind kunde kunden kundennummer label labels
		landline language last lastname lat latitude lead leads level line link linkedin links list lng locale
		location login lon longitude lower mail mails md5 medium member message middle mobile modified month nachname
		name names network new nickname no nom nombre note notes notiz nr num number of office old opt optin optout
		org organisation organization ort os other out owner pages partner people person personal persons phone phones
		plain plz port position post postal postcode prefix prenom private profile profiles province prénom qty
		quantity quarter queries query range ranges raw record ref reference referer referrer region registered remark
		remarks revenue road row rows salesforce salutation score search searched sector seen segment seniority server
		session sex sha signup since site sites size sku social some source stage start state status strasse straße
		street subject subscriber suffix sum suppressed sur surname tag tags tel telefon telefono telephone teléfono
		term terms text time timestamp title to total town twitter type types uid unsubscribed until updated upper uri
		url urls user username users utm uuid valid value values verified ville visit visitor visits vorname web
		website who whom work year zip zipcode`) {
		words[word] = true
	}
	return words
}()
